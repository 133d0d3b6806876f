"""A load's manifest: which files, which offset ranges, how many rows, and the proof.

Manifests are JSON files numbered from 1 that carry their own digest (`sealed`). Each names the
digest of the one before, the position of every partition after it, and sums over all loads so
far. All of that follows from the ledgers and files, too: `chain` derives it again.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from types import UnionType
from typing import Any, TypeVar

from ottla.base.errors import ErrorCode, OttlaError
from ottla.lake.log.sealed import SealBroken, seal, unseal
from ottla.lake.row_hash import MODULUS, hash_text
from ottla.ledger.partition import PartitionLedger, Told, Unreadable

_HASH = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True, slots=True)
class DataFile:
    """One Parquet file of rows of [start, end) of one partition. `hash` is of its rows."""

    path: str  # Relative to the table's folder.
    partition: int
    start: int
    end: int
    rows: int
    size_bytes: int
    hash: str
    sha256: str  # Of its bytes.


@dataclass(frozen=True, slots=True)
class Manifest:
    """What one load made visible, and where all loads up to it stand."""

    # Invariant: rows == sum of the files' rows == sum of the ledgers' `loaded`.
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

    @property
    def unexplained(self) -> int:
        """Offsets that no term explains; counts both what is missing and what is doubled."""
        return sum(abs(ledger.unexplained) for ledger in self.ledgers)


T = TypeVar("T", DataFile, Manifest, PartitionLedger, Told, Unreadable)


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
) -> Manifest:
    """Return the manifest that follows `before` (None: the first). Sums and positions are derived.

    `ledgers` holds one account for each partition whose position moves, starting where the
    partition stood before.
    """
    positions = dict(before.positions) if before else {}
    for ledger in ledgers:
        assert ledger.start == positions.get(ledger.partition, ledger.start), "ranges must touch"
        positions[ledger.partition] = ledger.end
    rows = sum(file.rows for file in files)
    assert rows == sum(ledger.loaded for ledger in ledgers), "files and ledgers must agree"
    left_out = sum(one.end - one.start for one in skipped)
    assert left_out == sum(ledger.unreadable for ledger in ledgers), "each skip has its offsets"
    load_hash = sum(int(file.hash, 16) for file in files) % MODULUS
    total = (int(before.total_hash, 16) if before else 0) + load_hash
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
        hash=hash_text(load_hash),
        total_rows=(before.total_rows if before else 0) + rows,
        total_hash=hash_text(total),
        skipped=tuple(skipped),
        accepted_loss=dict(accepted_loss or {}),
    )


def to_bytes(manifest: Manifest) -> bytes:
    """The manifest as it stands on disk."""
    content = asdict(manifest)
    for name in ("positions", "accepted_loss"):
        content[name] = {str(p): number for p, number in sorted(content[name].items())}
    return seal(content)


def from_bytes(content: bytes, name: str) -> tuple[Manifest, str]:
    """Parse a manifest; return it with its digest. `name` is what an error calls it.

    Raises OttlaError where a byte differs from what was written.
    """
    try:
        found, digest = unseal(content)
        found["files"] = tuple(_typed(DataFile(**file)) for file in found["files"])
        found["ledgers"] = tuple(_ledger(ledger) for ledger in found["ledgers"])
        found["skipped"] = tuple(_typed(Unreadable(**one)) for one in found["skipped"])
        for key in ("positions", "accepted_loss"):
            found[key] = {int(p): int(number) for p, number in found[key].items()}
        return _typed(Manifest(**found)), digest
    except SealBroken as error:
        raise _broken(name, str(error)) from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise _broken(name, f"can't be read ({error})") from error


def _ledger(content: dict[str, Any]) -> PartitionLedger:
    told = content.pop("told", None)
    return _typed(PartitionLedger(**content, told=_typed(Told(**told)) if told else None))


def _typed(parsed: T) -> T:
    """The same value, if each of its fields is of its type. Raises TypeError."""
    for each in fields(parsed):
        value = getattr(parsed, each.name)
        if isinstance(each.type, type | UnionType) and not isinstance(value, each.type):
            raise TypeError(f"{each.name} is {value!r}")
        if each.name in {"hash", "total_hash"} and not _HASH.fullmatch(value):
            raise ValueError(f"{each.name} is {value!r}")
    return parsed


def _broken(name: str, what: str) -> OttlaError:
    return OttlaError(
        ErrorCode.CORRUPT_MESSAGE,
        f"the manifest {name} {what}; nothing is loaded on top of it: restore the file from a "
        "copy, or load into a new folder",
    )
