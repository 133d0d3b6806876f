"""Publishes a source into a topic, in transactions that commit the position with the records.

    take over the transactional id → read the position → (send → add the position → commit)…

If a run is killed anywhere, the next run continues after the last committed transaction. Of two
runs at once, the one that began last continues; the other fails and commits nothing more.
"""

import hashlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ottla.base.ids import TopicPartition
from ottla.client import sync
from ottla.client.ranges import RangeClient
from ottla.lake.rows.publish_row import Row
from ottla.lake.store.targets import folder_of
from ottla.lake.write.pace import PublishPace
from ottla.lake.write.publish_fields import Fields
from ottla.lake.write.publish_position import (
    PublishPosition,
    as_offset,
    from_offset,
    position_at,
    start_of,
)
from ottla.lake.write.publish_sources import PublishSource, open_source

# A transaction ends after this time, far below its time-out, or after this many records.
_TRANSACTION_S = 10.0
_TRANSACTION_RECORDS = 100_000
_TIMEOUT_MS = 120_000


@dataclass(frozen=True, slots=True)
class PublishProgress:
    """The progress of a publish. Records and bytes are of this run; `total` is of all runs."""

    records: int
    bytes: int
    total: int
    file: str
    files_done: int
    files: int


@dataclass(frozen=True, slots=True)
class PublishResult:
    """The result of a publish or a dry run (`rows_left` only if it is quick to know)."""

    records: int
    bytes: int
    total: int
    files: int
    seconds: float
    name: str
    files_left: int = 0
    rows_left: int | None = None


def publish(
    source: str,
    topic: str,
    *,
    bootstrap: str = "localhost:9092",
    fields: Fields | None = None,
    name: str | None = None,
    pace: PublishPace | None = None,
    dry_run: bool = False,
    store_options: Mapping[str, str] | None = None,
    transaction_records: int = _TRANSACTION_RECORDS,
    on_progress: Callable[[PublishProgress], None] = lambda _progress: None,
    on_step: Callable[[str], None] = lambda _step: None,
) -> PublishResult:
    """Publish `source`, a lake table or Parquet, CSV or JSON lines files, into `topic`.

    Rows keep their order within each partition; the key decides the partition as in Kafka's
    producers, where `fields` names no column for it. Run again under the same `name` (default:
    one of source and topic), it goes on where the last one ended, also after it was killed: each
    row is in the topic once for readers with read_committed. Raises OttlaError.
    """
    began_s = time.monotonic()
    found = open_source(source, fields, store_options)
    chosen = name or _name_of(source, topic)
    group = f"ottla-publish.{chosen}"
    with RangeClient(bootstrap, client_id="ottla-publish") as client:
        # Check the topic first, so that a mistyped one is found before the id is taken over.
        client.topic(topic)
    if dry_run:
        return _plan(found, _position(bootstrap, group, topic), chosen)
    with sync.Producer(
        bootstrap,
        client_id="ottla-publish",
        transactional_id=group,
        transaction_timeout_ms=_TIMEOUT_MS,
        compression_type="lz4",
        linger_ms=50,
        allow_auto_create_topics=False,
    ) as producer:
        producer.init_transactions()
        on_step("id taken over")
        position = _position(bootstrap, group, topic)
        on_step("position read")
        run = _Run(producer, found, topic, group, pace or PublishPace(), transaction_records)
        run.on_step, run.on_progress = on_step, on_progress
        run.go_on(position)
    return PublishResult(
        run.records,
        run.bytes,
        run.total,
        len(found.files),
        time.monotonic() - began_s,
        chosen,
    )


class _Run:
    """One run of a publish, with a producer that holds its transactional id."""

    def __init__(
        self,
        producer: sync.Producer,
        source: PublishSource,
        topic: str,
        group: str,
        pace: PublishPace,
        transaction_records: int,
    ) -> None:
        self._producer = producer
        self._source = source
        self._topic = topic
        self._group = group
        self._pace = pace
        self._most = transaction_records
        self._stride = min(pace.rows_at_once, transaction_records)
        self._began_s = time.monotonic()
        self._begun_s = 0.0  # When the open transaction began; 0 without one.
        self._in_transaction = 0
        self.records = self.bytes = self.total = 0
        self.on_step: Callable[[str], None] = lambda _step: None
        self.on_progress: Callable[[PublishProgress], None] = lambda _progress: None

    def go_on(self, position: PublishPosition | None) -> None:
        """Publish everything after the position."""
        files = self._source.files
        first, skipped = start_of(position, files)
        self.total = 0 if position is None else position.records
        row = 0
        for place in range(first, len(files)):
            start = skipped if place == first else 0
            row = start
            for row, record in enumerate(self._source.rows(place, start), start + 1):
                self._send(record)
                if self.records % self._stride == 0:
                    self._look(place, row)
        if self._begun_s:
            self._commit(len(files) - 1, row)

    def _send(self, record: Row) -> None:
        if not self._begun_s:
            self._producer.begin_transaction()
            self._begun_s = time.monotonic()
        self._producer.send(
            self._topic,
            record.value,
            record.key,
            partition=record.partition,
            timestamp_ms=record.timestamp_ms,
            headers=record.headers or None,
        )
        self.records += 1
        self.total += 1
        self._in_transaction += 1
        self.bytes += len(record.key or b"") + len(record.value or b"")

    def _look(self, place: int, row: int) -> None:
        """Commit if it is time, and wait if records are too fast."""
        now_s = time.monotonic()
        delay_s = self._pace.delay_s(self.records, self.bytes, now_s - self._began_s)
        age_s = now_s - self._begun_s
        if self._in_transaction >= self._most or age_s + delay_s >= _TRANSACTION_S:
            self._commit(place, row)
        if delay_s > 0:
            time.sleep(delay_s)

    def _commit(self, place: int, row: int) -> None:
        self._producer.flush()
        self.on_step("records sent")
        position = position_at(self._source.files, place, row, self.total)
        self._producer.send_offsets(
            {TopicPartition(self._topic, 0): as_offset(position)}, self._group
        )
        self.on_step("position added")
        self._producer.commit_transaction()
        self.on_step("committed")
        self._begun_s, self._in_transaction = 0.0, 0
        files = self._source.files
        self.on_progress(
            PublishProgress(
                self.records, self.bytes, self.total, files[place].path, place, len(files)
            )
        )


def _position(bootstrap: str, group: str, topic: str) -> PublishPosition | None:
    with sync.Admin(bootstrap) as admin:
        found = admin.groups.offsets(group).get(TopicPartition(topic, 0))
    return None if found is None else from_offset(found)


def _plan(source: PublishSource, position: PublishPosition | None, name: str) -> PublishResult:
    """Return the part of the source that is left to publish."""
    first, row = start_of(position, source.files)
    counts = [source.row_count(place) for place in range(first, len(source.files))]
    known = [count for count in counts if count is not None]
    left = sum(known) - row if len(known) == len(counts) else None
    files_left = len(counts)
    if counts and counts[0] == row:
        files_left -= 1
    total = 0 if position is None else position.records
    return PublishResult(0, 0, total, len(source.files), 0.0, name, files_left, left)


def _name_of(source: str, topic: str) -> str:
    """Return a name for this source and this topic, the same in each run."""
    where = source if "://" in source else str(folder_of(source))
    return hashlib.sha256(f"{where}\n{topic}".encode()).hexdigest()[:16]
