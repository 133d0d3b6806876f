"""The interface of the lake to a cluster, as narrow as possible."""

from collections.abc import Generator, Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from ottla.client.ranges.account import OffsetAccount
from ottla.lake.plan import PartitionBounds, Range


@dataclass(frozen=True, slots=True)
class TopicDescription:
    """A topic as a load sees it before it plans.

    `bounds` end at the last stable offset: what lies behind is not decided yet.
    `compacted` says whether its cleanup policy may take single records away, `has_ledger` whether
    the brokers report the fate of each offset.
    """

    topic: str
    topic_id: str | None
    cluster_id: str | None
    bounds: Mapping[int, PartitionBounds]
    compacted: bool
    has_ledger: bool = False
    # When the cluster was asked, by the clock here: what comes later is not in `bounds`.
    at_ms: int = 0
    # How long compaction leaves tombstones in the log; Kafka's default where it is not known.
    delete_retention_ms: int = 86_400_000


class LogEnd(NamedTuple):
    """Where the readable part of a partition ends, and the leader epoch of its leader."""

    offset: int
    leader_epoch: int


@dataclass(frozen=True, slots=True)
class TopicEnds:
    """What a stream asks of a topic again and again."""

    topic_id: str | None
    ends: Mapping[int, LogEnd]


@dataclass(frozen=True, slots=True)
class Fetched:
    """One answer to a fetch: whole batches, in order of offset; perhaps a part of one behind.

    `aborted` names transactions that were aborted, as (producer id, first offset).
    """

    buffer: bytes
    log_start: int
    aborted: tuple[tuple[int, int], ...]


class Reading(Protocol):
    """What the reader of a range asks of a cluster."""

    def fetch(self, wanted: Range) -> Generator[Fetched]:
        """Yield answers until the batches seen reach `wanted.end`, retrying what may be retried.

        Nothing else may be asked until it has ended or was closed.

        Starts at the log's start where that is above `wanted.start`. Ends early only where the
        log holds nothing behind what it gave. Raises CorruptBatch where a batch's header is
        damaged, once all batches before it were given.
        """
        ...

    def peek(self, topic: str, partition: int, offset: int) -> bytes:
        """What the leader gives at `offset`, asked for once; perhaps no whole batch.

        Raises CorruptBatch where the leader says that its log is damaged there.
        """
        ...

    def end_offset(self, topic: str, partition: int) -> int:
        """Where the readable part of the partition's log ends now."""
        ...


class Cluster(Reading, Protocol):
    """A connection to Ottla or Apache Kafka, used from one thread."""

    def describe(self, topic: str) -> TopicDescription:
        """Raises OttlaError UNKNOWN_TOPIC_OR_PARTITION, or the error of the connection."""
        ...

    def topic_id(self, topic: str) -> str | None:
        """The id of the topic that has this name now; None where brokers give none.

        Raises as `describe`.
        """
        ...

    def offsets_at(self, topic: str, timestamp_ms: int) -> dict[int, int]:
        """First offset whose timestamp is `timestamp_ms` or later; absent where there is none."""
        ...

    def account(self, wanted: Range) -> OffsetAccount:
        """What became of each offset of the range, by the leader's ledger.

        Only where the topic's description says that there is one.
        """
        ...

    def close(self) -> None: ...


class WatchedCluster(Cluster, Protocol):
    """What a stream asks besides."""

    def topic_names(self) -> list[str]:
        """Names of all topics, in order, without the cluster's own."""
        ...

    def ends(self, topic: str) -> TopicEnds:
        """Raises as `describe`."""
        ...

    def log_starts(self, topic: str) -> dict[int, int]:
        """Where the log of each partition starts."""
        ...

    def high_watermarks(self, topic: str) -> dict[int, int]:
        """Where each partition's committed records end, decided or not."""
        ...

    def epoch_ends(self, topic: str, epochs: Mapping[int, int]) -> dict[int, int]:
        """Where the leader's log ends in a leader epoch of each partition; -1: it can't say."""
        ...
