"""One cleaning of one log: the job and its outcome, as lines sent to and from a child."""

import json
from dataclasses import asdict, dataclass, field
from typing import Any

from ottla.storage.cleaner.survivors import LastOfProducer
from ottla.storage.index.transaction_index import AbortedTransaction


@dataclass(frozen=True, slots=True)
class CleaningJob:
    """The part to clean. End offsets are exclusive, times in milliseconds, sizes in bytes."""

    folder: str
    # (base offset, bytes) of all segments from the first to the last that may be cleaned.
    segments: list[tuple[int, int]]
    # The start of the dirty part, and the end of the segments.
    first_dirty: int
    end: int
    now_ms: int
    delete_retention_ms: int
    segment_bytes: int
    segment_index_bytes: int
    index_interval_bytes: int
    # How many keys the map may take, and how many bytes a second are read and written.
    keys_max: int
    bytes_per_second: float
    last_batches: dict[int, LastOfProducer] = field(default_factory=dict)
    aborted: list[AbortedTransaction] = field(default_factory=list)
    # The number of this pass in the log's ledger.
    pass_number: int = 1
    # Only count what would be removed; write nothing.
    dry_run: bool = False

    def encode(self) -> str:
        """Encode as one line of JSON."""
        held = asdict(self)
        held["last_batches"] = [
            [producer, last.last_offset, last.producer_epoch]
            for producer, last in self.last_batches.items()
        ]
        return json.dumps(held, separators=(",", ":"))

    @classmethod
    def decode(cls, line: str) -> "CleaningJob":
        """Read what `encode` wrote."""
        held: dict[str, Any] = json.loads(line)
        held["segments"] = [tuple(segment) for segment in held["segments"]]
        held["aborted"] = [AbortedTransaction(*entry) for entry in held["aborted"]]
        held["last_batches"] = {
            producer: LastOfProducer(offset, epoch)
            for producer, offset, epoch in held["last_batches"]
        }
        return cls(**held)


@dataclass(slots=True)
class CleanedGroup:
    """Segments that were merged into one with the first one's base offset; `size` is in bytes."""

    base_offsets: list[int]
    size: int


@dataclass(slots=True)
class CleaningOutcome:
    """The outcome of a cleaning. Counts are of the whole range that was read a second time."""

    # The log is now clean below this offset.
    end: int = 0
    groups: list[CleanedGroup] = field(default_factory=list)
    keys: int = 0
    map_bytes: int = 0
    records_read: int = 0
    records_kept: int = 0
    # Included in the removed ones: records of aborted transactions, and expired tombstones.
    records_aborted: int = 0
    tombstones_dropped: int = 0
    bytes_read: int = 0
    bytes_kept: int = 0
    elapsed_ms: int = 0

    def encode(self) -> str:
        """Encode as one line of JSON."""
        return json.dumps(asdict(self), separators=(",", ":"))

    @classmethod
    def decode(cls, line: str) -> "CleaningOutcome":
        """Read what `encode` wrote."""
        held: dict[str, Any] = json.loads(line)
        held["groups"] = [CleanedGroup(**group) for group in held["groups"]]
        return cls(**held)
