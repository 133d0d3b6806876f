"""The lake's access to a cluster, Ottla or Apache Kafka, on the blocking client."""

import time
from collections.abc import Generator, Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import NamedTuple, Protocol
from uuid import UUID

from ottla.base.errors import ErrorCode, OttlaError
from ottla.client.common.errors import ConnectionFailed, OffsetOutOfRange, RequestTimedOut
from ottla.client.common.offset_account import OffsetAccount
from ottla.client.consumer.offsets import EARLIEST, LATEST
from ottla.client.ranges import RangeClient
from ottla.lake.model.plan import PartitionBounds, Range
from ottla.lake.source.access import Bootstrap, Brokers, as_brokers

# How long a call is retried while brokers or leaders are away.
LOAD_PATIENCE_S = 60.0
# The same for a call that a person waits for, and that can be given up without loss.
LOOK_PATIENCE_S = 10.0

_LEADERLESS = frozenset(
    {
        ErrorCode.BROKER_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
    }
)


def is_outage(error: OttlaError) -> bool:
    """Return whether brokers or leaders are away, which is waited for as long as it takes."""
    return isinstance(error, ConnectionFailed | RequestTimedOut) or error.code in _LEADERLESS


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


class Log(Protocol):
    """The requests to a cluster that reading a range needs. A seam: tests read damaged logs."""

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


class Cluster(Log):
    """A connection to Ottla or Apache Kafka, used from one thread.

    Reads committed records only: records of aborted transactions never get into the lake.
    """

    def __init__(self, brokers: Brokers, patience_s: float = LOAD_PATIENCE_S) -> None:
        self._client = RangeClient(
            brokers.bootstrap,
            client_id="ottla-lake",
            retry_timeout_ms=round(patience_s * 1000),
            read_committed=True,
            config=brokers.access.client_config(),
        )

    def describe(self, topic: str) -> TopicDescription:
        """Raises OttlaError UNKNOWN_TOPIC_OR_PARTITION, or the error of the connection."""
        at_ms = time.time_ns() // 1_000_000
        topic_id = self.topic_id(topic)
        starts = self.log_starts(topic)
        ends = self._client.list_offsets(topic, LATEST)
        settings = self._client.topic_settings(topic)
        retention = settings.get("delete.retention.ms")
        return TopicDescription(
            topic=topic,
            topic_id=topic_id,
            cluster_id=self._client.cluster_id(),
            bounds={p: PartitionBounds(start, ends[p].offset) for p, start in starts.items()},
            compacted="compact" in (settings.get("cleanup.policy") or ""),
            has_ledger=self._client.has_ledger(),
            at_ms=at_ms,
            **({"delete_retention_ms": int(retention)} if retention else {}),
        )

    def topic_names(self) -> list[str]:
        """Return the names of all topics, in order, without the cluster's internal topics."""
        return self._client.topic_names(internal=False)

    def topic_id(self, topic: str) -> str | None:
        """Return the id of the topic that has this name now; None if brokers have no ids.

        Raises as `describe`.
        """
        found = self._client.topic(topic).topic_id
        return str(found) if found.int else None

    def offsets_at(self, topic: str, timestamp_ms: int) -> dict[int, int]:
        """Return first offsets with a timestamp of `timestamp_ms` or later; absent if none."""
        if timestamp_ms < 0:
            # A request cannot have such a time, but a record can.
            return self.log_starts(topic)
        found = self._client.list_offsets(topic, timestamp_ms)
        return {partition: first.offset for partition, first in found.items() if first.offset >= 0}

    def ends(self, topic: str) -> TopicEnds:
        """Return the ends of the topic's partitions. Raises as `describe`."""
        topic_id = self.topic_id(topic)
        found = self._client.list_offsets(topic, LATEST)
        return TopicEnds(
            topic_id, {p: LogEnd(end.offset, end.leader_epoch) for p, end in found.items()}
        )

    def log_starts(self, topic: str) -> dict[int, int]:
        """Return the start of each partition's log."""
        found = self._client.list_offsets(topic, EARLIEST)
        return {partition: start.offset for partition, start in found.items()}

    def high_watermarks(self, topic: str) -> dict[int, int]:
        """Return the high watermark of each partition, including undecided transactions."""
        return self._client.high_watermarks(topic)

    def epoch_ends(self, topic: str, epochs: Mapping[int, int]) -> dict[int, int]:
        """Return the end of a leader epoch in each partition's log; -1 if it is unknown."""
        return self._client.epoch_ends(topic, epochs)

    def fetch(self, wanted: Range) -> Generator[Fetched]:
        position = wanted.start
        while True:
            try:
                yield from self._fetch(wanted, position)
                return
            except OffsetOutOfRange:
                # Retention may have moved past the start since the range was planned; only then
                # does reading continue at the log's new start, which the ledger records.
                starts = self._client.list_offsets(wanted.topic, EARLIEST, [wanted.partition])
                log_start = starts[wanted.partition].offset
                if log_start <= position:
                    raise
                yield Fetched(b"", log_start, ())
                position = log_start
                if position >= wanted.end:
                    return

    def _fetch(self, wanted: Range, position: int) -> Generator[Fetched]:
        reading = self._client.fetch_range(
            wanted.topic,
            wanted.partition,
            position,
            wanted.end,
            topic_id=UUID(wanted.topic_id) if wanted.topic_id else None,
        )
        with closing(reading) as answers:
            for answer in answers:
                # Tasks keep slices of this buffer while the next answer arrives in another one.
                yield Fetched(bytes(answer.batches), answer.log_start_offset, answer.aborted)

    def peek(self, topic: str, partition: int, offset: int) -> bytes:
        return self._client.fetch_once(topic, partition, offset)

    def end_offset(self, topic: str, partition: int) -> int:
        return self._client.list_offsets(topic, LATEST, [partition])[partition].offset

    def account(self, wanted: Range) -> OffsetAccount:
        """Return the fate of each offset of the range, from the leader's ledger.

        Only valid if the topic's description says that there is a ledger.
        """
        return self._client.offset_account(wanted.topic, wanted.partition, wanted.start, wanted.end)

    def close(self) -> None:
        """Close all connections."""
        self._client.close()


def connect(bootstrap: Bootstrap, patience_s: float = LOAD_PATIENCE_S) -> Cluster:
    """Connect to the cluster at `bootstrap` (`host:port,host:port`); nothing is sent yet.

    Each call is retried for `patience_s` while brokers or leaders are away.
    """
    return Cluster(as_brokers(bootstrap), patience_s)
