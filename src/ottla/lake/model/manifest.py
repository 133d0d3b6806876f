"""A commit's manifest lists its files, its offset ranges, its row counts and their proof.

Manifests are JSON files numbered from 1 that carry their own digest (`seal`). Each names the
digest of the previous manifest, the position of every partition after the commit, and sums over all
commits so far. All of that can also be derived from the ledgers and files; `chain` does so.

    kind         what it does
    load         adds files of offsets from the positions on, and advances the positions
    epoch        adds 1 to the writer epoch, because a long-running writer has started
    compaction   replaces files, dead letters included, by others with the same rows
    replacement  replaces files, dead letters included, by others of the same offset ranges
    changelog    applies the changes from the positions on to a table with one row per key, and
                 advances the positions: replaces the files of each bucket that has changes
"""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from types import UnionType
from typing import Any, Literal, TypeVar, get_args

from ottla.base.errors import ErrorCode, OttlaError
from ottla.lake.model import event_times as times
from ottla.lake.model.event_times import EventTimes
from ottla.lake.model.row_hash import MODULUS, hash_text
from ottla.ledger.partition import LedgerTotals, PartitionLedger, Unreadable

FORMAT = 3
_FORMAT_LINE = re.compile(rb'\{\n "format": (\d+),\n')
_OPENING = b'{\n "format": %d,\n "sha256": "' % FORMAT
_OPENING_SIZE = len(_OPENING)
_BLANK = b"0" * 64


class SealBroken(ValueError):
    """Raised if the bytes are not the ones that were written, or are of another format."""


def seal(fields: Mapping[str, Any]) -> bytes:
    """Return the file that holds `fields`."""
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


Kind = Literal["load", "epoch", "compaction", "replacement", "changelog"]
# Kinds of commits that advance the positions.
MOVES_POSITIONS = frozenset({"load", "changelog"})
Keeps = Literal["latest", "history"]

_WORDS = {"kind": get_args(Kind), "keeps": get_args(Keeps)}
_FILES = (
    "files",
    "removed",
    "dead_letters",
    "hidden",
    "removed_hidden",
    "removed_dead_letters",
)
_HASH = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True, slots=True)
class DataFile:
    """A Parquet file with rows of one partition's offsets [start, end), and their `hash`.

    In a changelog table `partition` is the number of a bucket, which holds rows of all partitions,
    and `start` and `end` are 0.
    """

    path: str  # Relative to the table's folder.
    partition: int
    start: int
    end: int
    rows: int
    size_bytes: int
    hash: str
    sha256: str  # The digest of the file's bytes.
    # True for a file of a history whose values have all ended, so that its rows never change again.
    closed: bool = False
    # The bucket of event time that the rows belong to; empty if the table is not divided by event
    # time. Files of one partition and one bucket have consecutive offset ranges; files of different
    # buckets may overlap.
    event: str = ""


@dataclass(frozen=True, slots=True)
class TableSchema:
    """The columns that decoding adds. `number` counts how often they have changed."""

    number: int
    columns: tuple[Mapping[str, Any], ...]  # In the form of `layout.table_schema`.
    # How records are decoded, in the form of `decode_spec.options_of`. Later loads use it too.
    decode: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SchemaChange:
    """A change of the columns, and the first offset in each partition to which it applies."""

    what: str
    offsets: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class Changelog:
    """What a changelog table keeps for each key, and how many buckets its keys are spread over."""

    keeps: Keeps
    buckets: int


@dataclass(frozen=True, slots=True)
class Manifest:
    """The files and offsets that one commit adds, and the table's totals after that commit."""

    # Invariant: rows == sum of the files' rows; in a load also == sum of the ledgers' `loaded`.
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
    hash: str
    total_rows: int
    total_hash: str
    # Offset ranges that could not be read and were left out, in order. They add up to the ledgers'
    # count of unreadable offsets.
    skipped: tuple[Unreadable, ...] = ()
    # By partition: how many deleted offsets were lost to the table. The load accepted the loss.
    accepted_loss: Mapping[int, int] = field(default_factory=dict)
    kind: Kind = "load"
    # Files of earlier commits that this commit removes, as their own manifests describe them.
    removed: tuple[DataFile, ...] = ()
    # Never decreases. Only an `epoch` commit changes it; every other commit repeats it.
    writer_epoch: int = 0
    # Problems of the table, in words, that an operator chose to override.
    overridden: tuple[str, ...] = ()
    # None: the table has only the raw columns.
    table_schema: TableSchema | None = None
    schema_changes: tuple[SchemaChange, ...] = ()
    # Files of records that could not be decoded. Their rows add up to the ledgers' count.
    dead_letters: tuple[DataFile, ...] = ()
    # None: the table is not a changelog table.
    changelog: Changelog | None = None
    # Changelog tables only: files of the table's state that readers do not see, added and removed.
    hidden: tuple[DataFile, ...] = ()
    removed_hidden: tuple[DataFile, ...] = ()
    # None: the table does not use event time.
    events: EventTimes | None = None
    # Files of dead letters of earlier commits that this commit removes.
    removed_dead_letters: tuple[DataFile, ...] = ()

    @property
    def unexplained(self) -> int:
        """Number of offsets that no ledger term explains, whether missing or doubled."""
        return sum(abs(ledger.unexplained) for ledger in self.ledgers)


T = TypeVar(
    "T",
    Changelog,
    DataFile,
    Manifest,
    PartitionLedger,
    SchemaChange,
    TableSchema,
    LedgerTotals,
    Unreadable,
)


def next_manifest(
    before: Manifest | None,
    before_digest: str | None,
    *,
    load_id: str,
    topic: str,
    topic_id: str | None,
    cluster_id: str | None,
    created_ms: int,
    files: Sequence[DataFile],
    ledgers: Sequence[PartitionLedger],
    skipped: Sequence[Unreadable] = (),
    accepted_loss: Mapping[int, int] | None = None,
    kind: Kind = "load",
    removed: Sequence[DataFile] = (),
    overridden: Sequence[str] = (),
    table_schema: TableSchema | None = None,
    schema_changes: Sequence[SchemaChange] = (),
    dead_letters: Sequence[DataFile] = (),
    changelog: Changelog | None = None,
    hidden: Sequence[DataFile] = (),
    removed_hidden: Sequence[DataFile] = (),
    events: EventTimes | None = None,
    removed_dead_letters: Sequence[DataFile] = (),
) -> Manifest:
    """Return the manifest that follows `before` (None: the first), with sums and positions derived.

    For a load or a changelog, `ledgers` has one ledger for each partition whose position moves; it
    starts at the partition's previous position. For a replacement, it has one ledger for each
    replaced range. Other kinds have none. If `table_schema`, `changelog` or `events` is missing,
    the value of the previous manifest stays. An `epoch` adds 1 to the writer epoch; other kinds
    keep it.
    """
    positions = dict(before.positions) if before else {}
    if kind in MOVES_POSITIONS:
        for ledger in ledgers:
            at = positions.get(ledger.partition, ledger.start)
            assert ledger.start == at, "ranges must touch"
            positions[ledger.partition] = ledger.end
    rows, hashed = sums(files)
    if kind in ("load", "replacement"):
        assert rows == sum(ledger.loaded for ledger in ledgers), "files and ledgers must agree"
    left_out = sum(one.end - one.start for one in skipped)
    assert left_out == sum(ledger.unreadable for ledger in ledgers), "each skip has its offsets"
    gone_rows, gone_hash = sums(removed)
    total = (int(before.total_hash, 16) if before else 0) + hashed - gone_hash
    epoch = before.writer_epoch if before else 0
    return Manifest(
        version=before.version + 1 if before else 1,
        load_id=load_id,
        topic=topic,
        topic_id=topic_id,
        cluster_id=cluster_id,
        created_ms=created_ms,
        previous=before_digest,
        files=tuple(files),
        ledgers=tuple(ledgers),
        positions=positions,
        rows=rows,
        hash=hash_text(hashed),
        total_rows=(before.total_rows if before else 0) + rows - gone_rows,
        total_hash=hash_text(total),
        skipped=tuple(skipped),
        accepted_loss=dict(accepted_loss or {}),
        kind=kind,
        removed=tuple(removed),
        writer_epoch=epoch + 1 if kind == "epoch" else epoch,
        overridden=tuple(overridden),
        table_schema=table_schema or (before.table_schema if before else None),
        schema_changes=tuple(schema_changes),
        dead_letters=tuple(dead_letters),
        changelog=changelog or (before.changelog if before else None),
        hidden=tuple(hidden),
        removed_hidden=tuple(removed_hidden),
        events=events or _events_after(before),
        removed_dead_letters=tuple(removed_dead_letters),
    )


def _events_after(before: Manifest | None) -> EventTimes | None:
    """Return the event times of the previous commit, for a commit that adds no rows of its own."""
    return replace(before.events, late={}) if before and before.events else None


def sums(files: Sequence[DataFile]) -> tuple[int, int]:
    """Return the number of rows in the files, and their hash."""
    hashed = sum(int(file.hash, 16) for file in files) % MODULUS
    return sum(file.rows for file in files), hashed


def to_bytes(manifest: Manifest) -> bytes:
    """Return the manifest in the form in which it is stored."""
    content = asdict(manifest)
    for name in ("positions", "accepted_loss"):
        content[name] = _by_text(content[name])
    for change in content["schema_changes"]:
        change["offsets"] = _by_text(change["offsets"])
    if manifest.events is not None:
        for name in ("highest", "empty_at", "watermarks", "late"):
            content["events"][name] = _by_text(content["events"][name])
    return seal(content)


def _by_text(numbers: Mapping[int, int]) -> dict[str, int]:
    return {str(partition): number for partition, number in sorted(numbers.items())}


def _by_number(numbers: Mapping[str, int]) -> dict[int, int]:
    return {int(partition): int(number) for partition, number in numbers.items()}


def from_bytes(content: bytes, name: str) -> tuple[Manifest, str]:
    """Parse a manifest and return it with its digest. Errors call it `name`.

    Raises OttlaError if any byte differs from what was written.
    """
    try:
        found, digest = unseal(content)
        for key in _FILES:
            found[key] = tuple(_typed(DataFile(**file)) for file in found.get(key, ()))
        found["ledgers"] = tuple(_ledger(ledger) for ledger in found["ledgers"])
        found["skipped"] = tuple(_typed(Unreadable(**one)) for one in found["skipped"])
        for key in ("positions", "accepted_loss"):
            found[key] = _by_number(found[key])
        found["overridden"] = tuple(map(str, found.get("overridden", ())))
        found["table_schema"] = _schema(found.get("table_schema"))
        found["schema_changes"] = tuple(map(_change, found.get("schema_changes", ())))
        if found.get("changelog") is not None:
            found["changelog"] = _typed(Changelog(**found["changelog"]))
        found["events"] = times.from_json(found.get("events"))
        return _typed(Manifest(**found)), digest
    except SealBroken as error:
        raise _broken(name, str(error)) from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise _broken(name, f"can't be read ({error})") from error


def _ledger(content: dict[str, Any]) -> PartitionLedger:
    told = content.pop("told", None)
    return _typed(PartitionLedger(**content, told=_typed(LedgerTotals(**told)) if told else None))


def _schema(content: dict[str, Any] | None) -> TableSchema | None:
    if content is None:
        return None
    columns = tuple(map(dict, content["columns"]))
    return _typed(TableSchema(content["number"], columns, dict(content.get("decode", {}))))


def _change(content: dict[str, Any]) -> SchemaChange:
    return _typed(SchemaChange(content["what"], _by_number(content["offsets"])))


def _typed(parsed: T) -> T:
    """Return the value if each of its fields has the declared type. Raises TypeError."""
    for each in fields(parsed):
        value = getattr(parsed, each.name)
        if isinstance(each.type, type | UnionType) and not isinstance(value, each.type):
            raise TypeError(f"{each.name} is {value!r}")
        if each.name in {"hash", "total_hash"} and not _HASH.fullmatch(value):
            raise ValueError(f"{each.name} is {value!r}")
        if each.name in _WORDS and value not in _WORDS[each.name]:
            raise ValueError(f"{each.name} is {value!r}")
    return parsed


def _broken(name: str, what: str) -> OttlaError:
    return OttlaError(
        ErrorCode.CORRUPT_MESSAGE,
        f"the manifest {name} {what}; nothing is loaded on top of it: restore the file from a "
        "copy, or load into a new folder",
    )
