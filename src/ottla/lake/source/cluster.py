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

# How long a call is retried while brokers or leaders are unavailable.
LOAD_PATIENCE_S = 60.0
# The same for a call whose result is only shown to a user.
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
    """Return whether the error means that brokers or leaders are unavailable for now."""
    return isinstance(error, ConnectionFailed | RequestTimedOut) or error.code in _LEADERLESS


@dataclass(frozen=True, slots=True)
class TopicBounds:
    """The description of a topic that a load plans with.

    `bounds` end at the last stable offset, because later records may still be aborted. `compacted`
    says whether the topic is compacted, `has_ledger` whether the brokers keep a ledger that
    explains each offset.
    """

    topic: str
    topic_id: str | None
    cluster_id: str | None
    bounds: Mapping[int, PartitionBounds]
    compacted: bool
    has_ledger: bool = False
    # The time of the description, by this machine's clock. Later records are not in `bounds`.
    at_ms: int = 0
    # How long compaction keeps tombstones in the log; Kafka's default if unknown.
    delete_retention_ms: int = 86_400_000


class LogPosition(NamedTuple):
    """An offset of a partition, and the leader epoch when it was the end; -1 if unknown."""

    offset: int
    leader_epoch: int


@dataclass(frozen=True, slots=True)
class TopicEnds:
    """The id of a topic and the last stable offsets of its partitions, which a stream polls."""

    topic_id: str | None
    ends: Mapping[int, LogPosition]


@dataclass(frozen=True, slots=True)
class Fetched:
    """One fetch response: whole batches in order of offset, perhaps followed by a partial batch.

    `aborted` has the aborted transactions as (producer id, first offset).
    """

    buffer: bytes
    log_start: int
    aborted: tuple[tuple[int, int], ...]


class Log(Protocol):
    """The requests to a cluster that reading a range needs. Tests replace it by damaged logs."""

    def fetch(self, wanted: Range) -> Generator[Fetched]:
        """Yield fetch responses until their batches reach `wanted.end`. Fetches are retried.

        No other request may be made until the iteration has ended or was closed.

        It starts at the log start offset if that is above `wanted.start`. It ends early only if the
        log has no records after the last response. Raises CorruptBatch if a batch's header is
        damaged, after all earlier batches were yielded.
        """
        ...

    def peek(self, topic: str, partition: int, offset: int) -> bytes:
        """Return the response of a single fetch at `offset`, perhaps not a whole batch.

        Raises CorruptBatch if the leader reports that its log is damaged there.
        """
        ...

    def end_offset(self, topic: str, partition: int) -> int:
        """Return the partition's last stable offset."""
        ...


class Cluster(Log):
    """A connection to Ottla or Apache Kafka, used from one thread.

    It reads with read_committed, so records of aborted transactions never get into the lake.
    """

    def __init__(self, brokers: Brokers, patience_s: float = LOAD_PATIENCE_S) -> None:
        self._client = RangeClient(
            brokers.bootstrap,
            client_id="ottla-lake",
            retry_timeout_ms=round(patience_s * 1000),
            read_committed=True,
            config=brokers.access.client_config(),
        )

    def describe(self, topic: str) -> TopicBounds:
        """Describe a topic.

        Raises OttlaError UNKNOWN_TOPIC_OR_PARTITION, or the error of the connection.
        """
        at_ms = time.time_ns() // 1_000_000
        topic_id = self.topic_id(topic)
        starts = self.log_starts(topic)
        ends = self._client.list_offsets(topic, LATEST)
        settings = self._client.topic_settings(topic)
        retention = settings.get("delete.retention.ms")
        return TopicBounds(
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
        """Return the id of the topic that has this name now; None if brokers support no topic ids.

        Raises as `describe`.
        """
        found = self._client.topic(topic).topic_id
        return str(found) if found.int else None

    def offsets_at(self, topic: str, timestamp_ms: int) -> dict[int, int]:
        """Return each partition's first offset at or after `timestamp_ms`, if it has one."""
        if timestamp_ms < 0:
            # ListOffsets has other meanings for negative times, but a record may have such a time.
            return self.log_starts(topic)
        found = self._client.list_offsets(topic, timestamp_ms)
        return {partition: first.offset for partition, first in found.items() if first.offset >= 0}

    def ends(self, topic: str) -> TopicEnds:
        """Return the ends of the topic's partitions. Raises as `describe`."""
        topic_id = self.topic_id(topic)
        found = self._client.list_offsets(topic, LATEST)
        return TopicEnds(
            topic_id, {p: LogPosition(end.offset, end.leader_epoch) for p, end in found.items()}
        )

    def log_starts(self, topic: str) -> dict[int, int]:
        """Return the start of each partition's log."""
        found = self._client.list_offsets(topic, EARLIEST)
        return {partition: start.offset for partition, start in found.items()}

    def high_watermarks(self, topic: str) -> dict[int, int]:
        """Return the high watermark of each partition, which may be above open transactions."""
        return self._client.high_watermarks(topic)

    def epoch_ends(self, topic: str, epochs: Mapping[int, int]) -> dict[int, int]:
        """Return the end offset of a leader epoch in each partition; -1 if it is unknown."""
        return self._client.epoch_ends(topic, epochs)

    def fetch(self, wanted: Range) -> Generator[Fetched]:
        position = wanted.start
        while True:
            try:
                yield from self._fetch(wanted, position)
                return
            except OffsetOutOfRange:
                # If retention has moved the log start offset past the position since the range was
                # planned, continue there. The ledger records the deleted offsets.
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
                # Copy, because rows keep slices of this buffer while the client reuses its own.
                yield Fetched(bytes(answer.batches), answer.log_start_offset, answer.aborted)

    def peek(self, topic: str, partition: int, offset: int) -> bytes:
        return self._client.fetch_once(topic, partition, offset)

    def end_offset(self, topic: str, partition: int) -> int:
        return self._client.list_offsets(topic, LATEST, [partition])[partition].offset

    def account(self, wanted: Range) -> OffsetAccount:
        """Return the leader's ledger of the range, which explains each offset.

        It may be called only if `has_ledger` of the topic's description is true.
        """
        return self._client.offset_account(wanted.topic, wanted.partition, wanted.start, wanted.end)

    def close(self) -> None:
        """Close all connections."""
        self._client.close()


def connect(bootstrap: Bootstrap, patience_s: float = LOAD_PATIENCE_S) -> Cluster:
    """Return a client of the cluster at `bootstrap`. The first request opens a connection.

    Each call is retried for `patience_s` while brokers or leaders are unavailable.
    """
    return Cluster(as_brokers(bootstrap), patience_s)
