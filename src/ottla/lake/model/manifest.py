"""The manifest of a commit, which lists its files, offset ranges, row counts and hashes.

Manifests are JSON files numbered from 1 that contain their own digest (`seal`). Each has the digest
of the previous manifest, the position of every partition after the commit, and sums over all
commits so far. `chain` derives the positions and sums again from ledgers and files.

    kind         what it does
    load         adds files of offsets from the positions on, and advances the positions
    epoch        adds 1 to the writer epoch, because a long-running writer has started
    compaction   replaces files of rows and dead letters by files with the same rows
    replacement  replaces files of rows and dead letters by files of the same offset ranges
    changelog    applies the changes from the positions on to a table with one row per key, by
                 replacing the files of each bucket with changes, and advances the positions
"""

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, is_dataclass
from functools import cache
from types import UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    Required,
    TypedDict,
    TypeVar,
    Unpack,
    get_args,
    get_origin,
    get_type_hints,
)

from ottla.base.errors import ErrorCode, OttlaError
from ottla.lake.model.event_times import EventTimes, settled
from ottla.lake.model.row_hash import MODULUS, hash_text
from ottla.ledger.partition import PartitionLedger, Unreadable

FORMAT = 3
_FORMAT_LINE = re.compile(rb'\{\n "format": (\d+),\n')
_OPENING = b'{\n "format": %d,\n "sha256": "' % FORMAT
_OPENING_SIZE = len(_OPENING)
_BLANK = b"0" * 64


class SealBroken(ValueError):
    """Raised if the bytes of a sealed file have changed, or have another format."""


def seal(fields: Mapping[str, Any]) -> bytes:
    """Return the bytes of a file with `fields` and their digest."""
    blank = json.dumps({"format": FORMAT, "sha256": _BLANK.decode(), **fields}, indent=1)
    content = blank.encode() + b"\n"
    return _with_digest(content, hashlib.sha256(content).hexdigest().encode())


def unseal(content: bytes) -> tuple[dict[str, Any], str]:
    """Return the fields and the digest of a file. Raises SealBroken."""
    found = _FORMAT_LINE.match(content)
    if found and int(found[1]) != FORMAT:
        raise SealBroken(
            f"is of format {int(found[1])}, which this version of ottla does not know: use a "
            "later version, if one wrote it"
        )
    digest = content[_OPENING_SIZE : _OPENING_SIZE + len(_BLANK)]
    actual = hashlib.sha256(_with_digest(content, _BLANK)).hexdigest()
    if not content.startswith(_OPENING) or digest != actual.encode():
        raise SealBroken("can't be read: its bytes do not match the SHA-256 in it")
    fields: dict[str, Any] = json.loads(content)
    del fields["format"], fields["sha256"]
    return fields, actual


def _with_digest(content: bytes, digest: bytes) -> bytes:
    return content[:_OPENING_SIZE] + digest + content[_OPENING_SIZE + len(digest) :]


T = TypeVar("T")

Kind = Literal["load", "epoch", "compaction", "replacement", "changelog"]
# Kinds of commits that advance the positions.
MOVES_POSITIONS = frozenset({"load", "changelog"})
Keeps = Literal["latest", "history"]

# A hash of rows in a manifest.
Hash = Annotated[str, re.compile(r"[0-9a-f]{32}")]


@dataclass(frozen=True, slots=True)
class DataFile:
    """A Parquet file with the rows of one partition at offsets [start, end), and their `hash`.

    In a changelog table `partition` is the number of a bucket, which has rows of all partitions,
    and `start` and `end` are 0.
    """

    path: str  # Relative to the table's folder.
    partition: int
    start: int
    end: int
    rows: int
    size_bytes: int
    hash: Hash
    sha256: str  # The digest of the file's bytes.
    # True for a file of a history whose rows have all been replaced by later records, so that they
    # never change again.
    closed: bool = False
    # The event-time bucket of the rows; empty if the table is not divided by event time. Offset
    # ranges of files in one partition and bucket do not overlap; those of different buckets may.
    event: str = ""


@dataclass(frozen=True, slots=True)
class TableSchema:
    """The columns that decoding adds. `number` counts how often they have changed."""

    number: int
    columns: tuple[Mapping[str, Any], ...]  # As `layout.table_schema` returns them.
    # How records are decoded, as `decode_spec.options_of` returns it. Later loads use it too.
    decode: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SchemaChange:
    """A change of the columns, and the first offset in each partition to which it applies."""

    what: str
    offsets: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class Changelog:
    """The kind of a changelog table, and the number of buckets over which keys are spread."""

    keeps: Keeps
    buckets: int


@dataclass(frozen=True, slots=True)
class Manifest:
    """The files and offsets that one commit adds, and the table's totals after that commit."""

    # Invariant: `rows` is the sum of the files' rows, and in a load also of the ledgers' `loaded`.
    version: int
    load_id: str
    topic: str
    topic_id: str | None
    cluster_id: str | None
    created_ms: int
    previous: str | None
    files: tuple[DataFile, ...]
    ledgers: tuple[PartitionLedger, ...]
    positions: Mapping[int, int]
    rows: int
    hash: Hash
    total_rows: int
    total_hash: Hash
    # Offset ranges that could not be read and were skipped, in order. Their sum is the ledgers'
    # count of unreadable offsets.
    skipped: tuple[Unreadable, ...] = ()
    # By partition: the number of lost offsets. The caller accepted the loss.
    accepted_loss: Mapping[int, int] = field(default_factory=dict)
    kind: Kind = "load"
    # Files of earlier commits that this commit removes, as their own manifests describe them.
    removed: tuple[DataFile, ...] = ()
    # Only an `epoch` commit increases it; every other commit repeats it.
    writer_epoch: int = 0
    # Problems of the table, as text, that an operator chose to override.
    overridden: tuple[str, ...] = ()
    # None if the table has only the raw columns.
    table_schema: TableSchema | None = None
    schema_changes: tuple[SchemaChange, ...] = ()
    # Files of dead letters. Their rows add up to the ledgers' count of dead letters.
    dead_letters: tuple[DataFile, ...] = ()
    # None if the table is not a changelog table.
    changelog: Changelog | None = None
    # Only in changelog tables: files of the table's state that readers do not see, added and
    # removed.
    hidden: tuple[DataFile, ...] = ()
    removed_hidden: tuple[DataFile, ...] = ()
    # None if the table does not use event time.
    events: EventTimes | None = None
    # Files of dead letters of earlier commits that this commit removes.
    removed_dead_letters: tuple[DataFile, ...] = ()

    @property
    def unexplained(self) -> int:
        """Return the number of missing or doubled offsets that no count of a ledger explains."""
        return sum(abs(ledger.unexplained) for ledger in self.ledgers)


class CommitFields(TypedDict, total=False):
    """The fields of a manifest that do not follow from the previous one; see `Manifest`."""

    load_id: Required[str]
    topic: Required[str]
    topic_id: Required[str | None]
    cluster_id: Required[str | None]
    created_ms: Required[int]
    files: Required[Sequence[DataFile]]
    ledgers: Required[Sequence[PartitionLedger]]
    skipped: Sequence[Unreadable]
    accepted_loss: Mapping[int, int]
    kind: Kind
    removed: Sequence[DataFile]
    overridden: Sequence[str]
    table_schema: TableSchema | None
    schema_changes: Sequence[SchemaChange]
    dead_letters: Sequence[DataFile]
    changelog: Changelog | None
    hidden: Sequence[DataFile]
    removed_hidden: Sequence[DataFile]
    events: EventTimes | None
    removed_dead_letters: Sequence[DataFile]


def next_manifest(
    before: Manifest | None, before_digest: str | None, **fields: Unpack[CommitFields]
) -> Manifest:
    """Return the manifest that follows `before`, and derive its sums and positions.

    `before` is None for the first manifest. For a load or a changelog, `ledgers` has one ledger for
    each partition whose position moves, which starts at the previous position. For a replacement,
    it has one ledger for each replaced range; other kinds have none. If `table_schema`, `changelog`
    or `events` is missing, the value of the previous manifest is kept.
    """
    kind, ledgers = fields.get("kind", "load"), fields["ledgers"]
    positions = dict(before.positions) if before else {}
    for ledger in ledgers if kind in MOVES_POSITIONS else ():
        at = positions.get(ledger.partition, ledger.start)
        assert ledger.start == at, "ranges must touch"
        positions[ledger.partition] = ledger.end
    rows, hashed = sums(fields["files"])
    if kind in ("load", "replacement"):
        assert rows == sum(ledger.loaded for ledger in ledgers), "files and ledgers must agree"
    left_out = sum(one.end - one.start for one in fields.get("skipped", ()))
    assert left_out == sum(ledger.unreadable for ledger in ledgers), "each skip has its offsets"
    gone_rows, gone_hash = sums(fields.get("removed", ()))
    epoch = before.writer_epoch if before else 0
    given: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in fields.items()
    }
    given |= {
        "table_schema": fields.get("table_schema") or (before.table_schema if before else None),
        "changelog": fields.get("changelog") or (before.changelog if before else None),
        "events": fields.get("events") or (settled(before.events) if before else None),
    }
    return Manifest(
        version=before.version + 1 if before else 1,
        previous=before_digest,
        positions=dict(sorted(positions.items())),
        rows=rows,
        hash=hash_text(hashed),
        total_rows=(before.total_rows if before else 0) + rows - gone_rows,
        total_hash=hash_text((int(before.total_hash, 16) if before else 0) + hashed - gone_hash),
        writer_epoch=epoch + 1 if kind == "epoch" else epoch,
        **given,
    )


def sums(files: Sequence[DataFile]) -> tuple[int, int]:
    """Return the number of rows in the files, and their hash."""
    hashed = sum(int(file.hash, 16) for file in files) % MODULUS
    return sum(file.rows for file in files), hashed


def to_bytes(manifest: Manifest) -> bytes:
    """Return the bytes of the manifest's file."""
    return seal(asdict(manifest))


def from_bytes(content: bytes, name: str) -> tuple[Manifest, str]:
    """Parse a manifest, and return it with its digest. `name` is its name in errors.

    Raises OttlaError if any byte has changed since it was written.
    """
    try:
        found, digest = unseal(content)
        return from_json(Manifest, found), digest
    except SealBroken as error:
        raise _broken(name, str(error)) from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise _broken(name, f"can't be read ({error})") from error


def from_json(kind: type[T], content: Mapping[str, Any]) -> T:
    """Convert parsed JSON to a dataclass, and check the declared types of its fields.

    Raises ValueError, KeyError, TypeError or AttributeError.
    """
    wanted: Any = kind
    found: T = _reader(wanted)(content)
    return found


@cache
def _reader(kind: Any, called: str = "it") -> Callable[[Any], Any]:
    """Return a function that converts parsed JSON to a value of the declared type `kind`."""
    origin, arguments, made = get_origin(kind), get_args(kind), kind
    if kind is Any:
        return lambda content: content
    if is_dataclass(kind):
        hints = get_type_hints(kind, include_extras=True)
        readers = {name: _reader(hint, name) for name, hint in hints.items()}
        return lambda content: made(**{name: readers[name](one) for name, one in content.items()})
    if origin is tuple:
        read = _reader(arguments[0], called)
        return lambda content: tuple(map(read, content))
    if origin is Mapping:
        key, read = arguments[0], _reader(arguments[1], called)
        return lambda content: {key(name): read(one) for name, one in content.items()}
    if origin is UnionType:  # A type or None.
        read = _reader(arguments[0], called)
        return lambda content: None if content is None else read(content)
    if origin is Literal:
        return _required(arguments.__contains__, called)
    if origin is Annotated:
        return _required(arguments[1].fullmatch, called)
    return _required(lambda content: isinstance(content, kind), called)


def _required(is_valid: Callable[[Any], object], called: str) -> Callable[[Any], Any]:
    def read(content: Any) -> Any:
        if not is_valid(content):
            raise ValueError(f"{called} is {content!r}")
        return content

    return read


def _broken(name: str, what: str) -> OttlaError:
    return OttlaError(
        ErrorCode.CORRUPT_MESSAGE,
        f"the manifest {name} {what}; nothing is loaded on top of it: restore the file from a "
        "copy, or load into a new folder",
    )
