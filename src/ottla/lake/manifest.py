"""A commit's manifest: which files, which offset ranges, how many rows, and the proof.

Manifests are JSON files numbered from 1 that carry their own digest (`sealed`). Each names the
digest of the one before, the position of every partition after it, and sums over all commits so
far. All of that follows from the ledgers and files, too: `chain` derives it again.

    kind         what it does
    load         adds files of offsets behind the positions, which it moves on
    epoch        adds 1 to the writer epoch: a long-running writer has started
    compaction   removes files, and adds others with the same rows; so with dead letters
    replacement  removes files, and adds others of the same ranges of offsets; so with dead letters
    changelog    applies changes behind the positions, which it moves on, to a table with one row of
                 each key: removes the files of the buckets that it touches, and adds others
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from types import UnionType
from typing import Any, Literal, TypeVar, get_args

from ottla.base.errors import ErrorCode, OttlaError
from ottla.lake.events import times
from ottla.lake.events.times import EventTimes
from ottla.lake.log.sealed import SealBroken, seal, unseal
from ottla.lake.row_hash import MODULUS, hash_text
from ottla.ledger.partition import LedgerTotals, PartitionLedger, Unreadable

Kind = Literal["load", "epoch", "compaction", "replacement", "changelog"]
# Those that move the positions on.
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
    """One Parquet file of rows of [start, end) of one partition. `hash` is of its rows.

    In a changelog table `partition` is a bucket, which has rows of all partitions, and both ends
    are 0.
    """

    path: str  # Relative to the table's folder.
    partition: int
    start: int
    end: int
    rows: int
    size_bytes: int
    hash: str
    sha256: str  # Of its bytes.
    # Of a history: its values hold no more, and its rows change no more.
    closed: bool = False
    # The bucket of event time that its rows are in (`events.buckets`); empty: not kept apart. Of
    # one partition, only files of one bucket lie one behind the other in their offsets.
    event: str = ""


@dataclass(frozen=True, slots=True)
class TableSchema:
    """The columns that decoding adds, and how often they were changed before."""

    number: int
    columns: tuple[Mapping[str, Any], ...]  # As `decode.typed_schema` writes them.
    # How records are decoded, as `decode.spec` writes it: what a later load goes on with.
    decode: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SchemaChange:
    """What changed in the columns, and the first offset of each partition that has it."""

    what: str
    offsets: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class Changelog:
    """What a changelog table keeps of each key, and over how many buckets its keys are spread."""

    keeps: Keeps
    buckets: int


@dataclass(frozen=True, slots=True)
class Manifest:
    """What one commit made visible, and where all commits up to it stand."""

    # Invariant: rows == sum of the files' rows; of a load also == sum of the ledgers' `loaded`.
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
    # What could not be read and was left out, in order; as many offsets as the ledgers count.
    skipped: tuple[Unreadable, ...] = ()
    # How many of a partition's deleted offsets were lost to the table, which the load accepted.
    accepted_loss: Mapping[int, int] = field(default_factory=dict)
    kind: Kind = "load"
    # Files of earlier commits that count no more, as their manifests describe them.
    removed: tuple[DataFile, ...] = ()
    # Never falls. Only an `epoch` changes it; every other commit repeats it.
    writer_epoch: int = 0
    # Problems of the table that an operator chose to build on, in words.
    overridden: tuple[str, ...] = ()
    # None: the raw columns only.
    table_schema: TableSchema | None = None
    schema_changes: tuple[SchemaChange, ...] = ()
    # Files of the records that could not be decoded; as many rows as the ledgers count.
    dead_letters: tuple[DataFile, ...] = ()
    # None: not a changelog table.
    changelog: Changelog | None = None
    # Of a changelog table: files of its state that readers do not see, added and removed.
    hidden: tuple[DataFile, ...] = ()
    removed_hidden: tuple[DataFile, ...] = ()
    # None: the table does not go by event time.
    events: EventTimes | None = None
    # Files of dead letters of earlier commits that count no more.
    removed_dead_letters: tuple[DataFile, ...] = ()

    @property
    def unexplained(self) -> int:
        """Offsets that no term explains; counts both what is missing and what is doubled."""
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
    """Return the manifest that follows `before` (None: the first). Sums and positions are derived.

    `ledgers` of a load or a changelog holds one account for each partition whose position moves,
    starting where the partition stood before; of a replacement, one for each range that is
    replaced. Other kinds have none. Without `table_schema` the columns stay as they are, without
    `changelog` what the table keeps, and without `events` how it goes by event time. An `epoch`
    adds 1 to the writer epoch, and other kinds keep it.
    """
    positions = dict(before.positions) if before else {}
    if kind in MOVES_POSITIONS:
        for ledger in ledgers:
            at = positions.get(ledger.partition, ledger.start)
            assert ledger.start == at, "ranges must touch"
            positions[ledger.partition] = ledger.end
    rows, hashed = _sums(files)
    if kind in ("load", "replacement"):
        assert rows == sum(ledger.loaded for ledger in ledgers), "files and ledgers must agree"
    left_out = sum(one.end - one.start for one in skipped)
    assert left_out == sum(ledger.unreadable for ledger in ledgers), "each skip has its offsets"
    gone_rows, gone_hash = _sums(removed)
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
    """The event times that a commit without rows of its own leaves as they are."""
    return replace(before.events, late={}) if before and before.events else None


def _sums(files: Sequence[DataFile]) -> tuple[int, int]:
    """Rows of the files, and their hash."""
    hashed = sum(int(file.hash, 16) for file in files) % MODULUS
    return sum(file.rows for file in files), hashed


def to_bytes(manifest: Manifest) -> bytes:
    """The manifest as it stands on disk."""
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
    """Parse a manifest; return it with its digest. `name` is what an error calls it.

    Raises OttlaError where a byte differs from what was written.
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
    """The same value, if each of its fields is of its type. Raises TypeError."""
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
