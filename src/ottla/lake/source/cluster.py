"""The lake's `Cluster`, built on the blocking client, for Ottla and Apache Kafka."""

import time
from collections.abc import Generator, Mapping
from contextlib import closing
from uuid import UUID

from ottla.client.common.errors import OffsetOutOfRange
from ottla.client.consumer.offsets import EARLIEST, LATEST
from ottla.client.ranges.account import OffsetAccount
from ottla.client.ranges.ranges import RangeClient
from ottla.lake.model.plan import PartitionBounds, Range
from ottla.lake.source.access import Bootstrap, Brokers, ClientAccess, as_brokers
from ottla.lake.source.source import Fetched, LogEnd, TopicDescription, TopicEnds

# How long a call is retried while brokers or leaders are away.
LOAD_PATIENCE_S = 60.0
# The same for a call that a person waits for, and that can be given up without loss.
LOOK_PATIENCE_S = 10.0


class KafkaCluster:
    """Reads committed records only: records of aborted transactions never get into the lake."""

    def __init__(
        self,
        brokers: Brokers,
        patience_s: float = LOAD_PATIENCE_S,
    ) -> None:
        self._client = RangeClient(
            brokers.bootstrap,
            client_id="ottla-lake",
            retry_timeout_ms=round(patience_s * 1000),
            read_committed=True,
            config=brokers.access.client_config(),
        )

    def describe(self, topic: str) -> TopicDescription:
        at_ms = time.time_ns() // 1_000_000
        view = self._client.topic(topic)
        starts = self._client.list_offsets(topic, EARLIEST)
        ends = self._client.list_offsets(topic, LATEST)
        settings = self._client.topic_settings(topic)
        policy = settings.get("cleanup.policy") or ""
        retention = settings.get("delete.retention.ms")
        return TopicDescription(
            topic=topic,
            topic_id=str(view.topic_id) if view.topic_id.int else None,
            cluster_id=self._client.cluster_id(),
            bounds={p: PartitionBounds(starts[p].offset, ends[p].offset) for p in starts},
            compacted="compact" in policy,
            has_ledger=self._client.has_ledger(),
            at_ms=at_ms,
            **({"delete_retention_ms": int(retention)} if retention else {}),
        )

    def topic_names(self) -> list[str]:
        """Return the names of all topics, in order, without the cluster's internal topics."""
        return self._client.topic_names(internal=False)

    def topic_id(self, topic: str) -> str | None:
        found = self._client.topic(topic).topic_id
        return str(found) if found.int else None

    def offsets_at(self, topic: str, timestamp_ms: int) -> dict[int, int]:
        if timestamp_ms < 0:
            # A request cannot have such a time, but a record can.
            return self.log_starts(topic)
        found = self._client.list_offsets(topic, timestamp_ms)
        return {partition: told.offset for partition, told in found.items() if told.offset >= 0}

    def ends(self, topic: str) -> TopicEnds:
        topic_id = self.topic_id(topic)
        found = self._client.list_offsets(topic, LATEST)
        return TopicEnds(
            topic_id,
            {p: LogEnd(end.offset, end.leader_epoch) for p, end in found.items()},
        )

    def log_starts(self, topic: str) -> dict[int, int]:
        found = self._client.list_offsets(topic, EARLIEST)
        return {partition: start.offset for partition, start in found.items()}

    def high_watermarks(self, topic: str) -> dict[int, int]:
        return self._client.high_watermarks(topic)

    def epoch_ends(self, topic: str, epochs: Mapping[int, int]) -> dict[int, int]:
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
                log_start = self._log_start(wanted)
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

    def _log_start(self, wanted: Range) -> int:
        told = self._client.list_offsets(wanted.topic, EARLIEST, [wanted.partition])
        return told[wanted.partition].offset

    def peek(self, topic: str, partition: int, offset: int) -> bytes:
        return self._client.fetch_once(topic, partition, offset)

    def end_offset(self, topic: str, partition: int) -> int:
        return self._client.list_offsets(topic, LATEST, [partition])[partition].offset

    def account(self, wanted: Range) -> OffsetAccount:
        return self._client.offset_account(wanted.topic, wanted.partition, wanted.start, wanted.end)

    def close(self) -> None:
        self._client.close()


def connect(
    bootstrap: Bootstrap,
    patience_s: float = LOAD_PATIENCE_S,
    access: ClientAccess | None = None,
) -> KafkaCluster:
    """Connect to the cluster at `bootstrap` (`host:port,host:port`); nothing is sent yet.

    Each call is retried for `patience_s` while brokers or leaders are away.
    """
    brokers = as_brokers(bootstrap)
    return KafkaCluster(
        brokers if access is None else Brokers(brokers.bootstrap, access), patience_s
    )
