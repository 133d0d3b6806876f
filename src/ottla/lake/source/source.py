"""The lake's interface to a cluster, as narrow as possible."""

from collections.abc import Generator, Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from ottla.client.ranges.account import OffsetAccount
from ottla.lake.model.plan import PartitionBounds, Range


@dataclass(frozen=True, slots=True)
class TopicDescription:
    """A topic as described to a load before it plans.

    `bounds` end at the last stable offset, because later records are undecided. `compacted` says
    whether the cleanup policy may remove single records, `has_ledger` whether the brokers report
    the fate of each offset.
    """

    topic: str
    topic_id: str | None
    cluster_id: str | None
    bounds: Mapping[int, PartitionBounds]
    compacted: bool
    has_ledger: bool = False
    # When the cluster was asked, by this machine's clock: later records are not in `bounds`.
    at_ms: int = 0
    # How long compaction keeps tombstones in the log; Kafka's default if unknown.
    delete_retention_ms: int = 86_400_000


class LogEnd(NamedTuple):
    """The end of the readable part of a partition, and its leader's epoch."""

    offset: int
    leader_epoch: int


@dataclass(frozen=True, slots=True)
class TopicEnds:
    """The facts about a topic that a stream asks for repeatedly."""

    topic_id: str | None
    ends: Mapping[int, LogEnd]


@dataclass(frozen=True, slots=True)
class Fetched:
    """One answer to a fetch: whole batches, in order of offset; perhaps followed by a partial one.

    `aborted` names aborted transactions as (producer id, first offset).
    """

    buffer: bytes
    log_start: int
    aborted: tuple[tuple[int, int], ...]


class Reading(Protocol):
    """The requests to a cluster that reading a range needs."""

    def fetch(self, wanted: Range) -> Generator[Fetched]:
        """Yield answers until the batches seen reach `wanted.end`, with retries.

        No other request may be made until the iteration has ended or was closed.

        Starts at the log's start if that is above `wanted.start`. Ends early only if the log holds
        nothing after the last answer. Raises CorruptBatch if a batch's header is damaged, after all
        earlier batches were yielded.
        """
        ...

    def peek(self, topic: str, partition: int, offset: int) -> bytes:
        """Return the leader's answer at `offset`, asked for once; perhaps not a whole batch.

        Raises CorruptBatch if the leader reports that its log is damaged there.
        """
        ...

    def end_offset(self, topic: str, partition: int) -> int:
        """Return the current end of the readable part of the partition's log."""
        ...


class Cluster(Reading, Protocol):
    """A connection to Ottla or Apache Kafka, used from one thread."""

    def describe(self, topic: str) -> TopicDescription:
        """Raises OttlaError UNKNOWN_TOPIC_OR_PARTITION, or the error of the connection."""
        ...

    def topic_id(self, topic: str) -> str | None:
        """Return the id of the topic that has this name now; None if brokers have no ids.

        Raises as `describe`.
        """
        ...

    def offsets_at(self, topic: str, timestamp_ms: int) -> dict[int, int]:
        """Return first offsets with a timestamp of `timestamp_ms` or later; absent if none."""
        ...

    def account(self, wanted: Range) -> OffsetAccount:
        """Return the fate of each offset of the range, from the leader's ledger.

        Only valid if the topic's description says that there is a ledger.
        """
        ...

    def close(self) -> None: ...


class WatchedCluster(Cluster, Protocol):
    """A cluster with the further requests that a stream needs."""

    def topic_names(self) -> list[str]:
        """Return the names of all topics, in order, without the cluster's internal topics."""
        ...

    def ends(self, topic: str) -> TopicEnds:
        """Return the ends of the topic's partitions. Raises as `describe`."""
        ...

    def log_starts(self, topic: str) -> dict[int, int]:
        """Return the start of each partition's log."""
        ...

    def high_watermarks(self, topic: str) -> dict[int, int]:
        """Return the high watermark of each partition, including undecided transactions."""
        ...

    def epoch_ends(self, topic: str, epochs: Mapping[int, int]) -> dict[int, int]:
        """Return the end of a leader epoch in each partition's log; -1 if it is unknown."""
        ...
