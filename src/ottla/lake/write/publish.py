"""Publishes a source into a topic, in transactions that commit the position with the records.

    take over the transactional id → read the position → (send → add the position → commit)…

If a run is killed at any step, the next run continues after the last committed transaction. Of two
runs at once, the one that started later continues; the other is fenced, and commits nothing more.
"""

import hashlib
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Unpack

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import TopicPartition
from ottla.client import OffsetAndMetadata, sync
from ottla.client.ranges import RangeClient
from ottla.lake.job.options import SourceOptions, TableOptions
from ottla.lake.model.option import Option, filled
from ottla.lake.rows.publish_row import Row
from ottla.lake.source.access import Brokers, brokers_of
from ottla.lake.store.targets import folder_of
from ottla.lake.write.publish_source import Fields, PublishSource, SourceFile, open_source

# Each transaction is committed after this time, well before its timeout.
_TRANSACTION_S = 10.0
_TIMEOUT_MS = 120_000
# Identifies offset metadata that a publish wrote.
_KIND = "ottla publish"
# With a rate limit, the clock is checked about this many times per second.
_LOOKS_PER_S = 20
_ROWS_AT_ONCE_MAX = 1_000


@dataclass(frozen=True, slots=True)
class PublishPace:
    """The rate limits of a publish. None means no limit."""

    records_per_s: float | None = None
    bytes_per_s: float | None = None

    def delay_s(self, records: int, size_bytes: int, elapsed_s: float) -> float:
        """Return the seconds to wait, after sending so much in `elapsed_s`, to keep the limits."""
        due_s = 0.0
        if self.records_per_s is not None:
            due_s = records / self.records_per_s
        if self.bytes_per_s is not None:
            due_s = max(due_s, size_bytes / self.bytes_per_s)
        return max(0.0, due_s - elapsed_s)

    @property
    def rows_at_once(self) -> int:
        """Return how many rows may be sent between two checks of the clock."""
        if self.bytes_per_s is not None:
            return 1
        if self.records_per_s is None:
            return _ROWS_AT_ONCE_MAX
        return max(1, min(_ROWS_AT_ONCE_MAX, int(self.records_per_s / _LOOKS_PER_S)))


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
    """The result of a publish or a dry run. `rows_left` is None if counting needs reading files."""

    records: int
    bytes: int
    total: int
    files: int
    seconds: float
    name: str
    files_left: int = 0
    rows_left: int | None = None
    left_out: int = 0  # Files of other programs in the table, which are never published.


class PublishOptions(SourceOptions, TableOptions, total=False):
    """The options of `publish`."""

    fields: Annotated[Fields | None, Option("The columns that make a record.")]
    name: Annotated[str | None, Option("What this publish is known by when it goes on.")]
    pace: Annotated[PublishPace, Option("The limits of its rate.", PublishPace())]
    dry_run: Annotated[bool, Option("Return what is left to publish, and do nothing.")]
    transaction_records: Annotated[int, Option("The most of a transaction.", 100_000)]
    on_progress: Annotated[
        Callable[[PublishProgress], None],
        Option("Called after each transaction.", lambda _progress: None),
    ]
    on_step: Annotated[Callable[[str], None], Option("Called after each step.", lambda _step: None)]


def publish(source: str, topic: str, **options: Unpack[PublishOptions]) -> PublishResult:
    """Publish `source`, a lake table or Parquet, CSV or JSON lines files, into `topic`.

    Rows keep their order within each partition. If `fields` names no column for the partition, the
    key decides it as in Kafka's producers. A further run under the same `name` (by default derived
    from source and topic) continues after the last committed transaction, even if the last run was
    killed, so readers with read_committed see each row once. Raises OttlaError.
    """
    given = filled(PublishOptions, options)
    began_s = time.monotonic()
    brokers = brokers_of(given["bootstrap"], given["config"], given["client"])
    config = brokers.access.client_config()
    found = open_source(source, given["fields"], given["store_options"])
    chosen = given["name"] or _name_of(source, topic)
    group = f"ottla-publish.{chosen}"
    with RangeClient(brokers.bootstrap, client_id="ottla-publish", config=config) as client:
        # Check the topic first: a mistyped topic must not fence a running publish.
        client.topic(topic)
    if given["dry_run"]:
        return _plan(found, _position(brokers, group, topic), chosen)
    with sync.Producer(
        brokers.bootstrap,
        client_id="ottla-publish",
        transactional_id=group,
        transaction_timeout_ms=_TIMEOUT_MS,
        compression_type="lz4",
        linger_ms=50,
        allow_auto_create_topics=False,
        config=config,
    ) as producer:
        producer.init_transactions()
        given["on_step"]("id taken over")
        position = _position(brokers, group, topic)
        given["on_step"]("position read")
        run = _Run(producer, found, topic, group, given)
        run.go_on(position)
    return PublishResult(
        run.records,
        run.bytes,
        run.total,
        len(found.files),
        time.monotonic() - began_s,
        chosen,
        left_out=found.left_out,
    )


@dataclass(frozen=True, slots=True)
class PublishPosition:
    """How far a publish has come: all earlier files, and the first `row` rows of `file`.

    `records` is the number of records published so far. The position is stored as a committed
    offset with metadata, in a group named like the publish, and is committed in the transaction of
    the records before it.
    """

    file: SourceFile
    row: int
    records: int
    before: str  # A digest of the paths of all files before it.


def position_at(files: Sequence[SourceFile], place: int, row: int, records: int) -> PublishPosition:
    """Return the position after `row` rows of the file at `place`."""
    return PublishPosition(files[place], row, records, _digest(files[:place]))


def as_offset(position: PublishPosition) -> OffsetAndMetadata:
    """Return the position as a committed offset, which is the number of records so far."""
    text = json.dumps(
        {
            "kind": _KIND,
            "file": position.file.path,
            "bytes": position.file.size_bytes,
            "row": position.row,
            "before": position.before,
        }
    )
    return OffsetAndMetadata(position.records, text)


def from_offset(offset: OffsetAndMetadata) -> PublishPosition:
    """Parse a committed offset as a position. Raises OttlaError if no publish wrote it."""
    try:
        found = json.loads(offset.metadata)
        if found["kind"] == _KIND:
            file = SourceFile(found["file"], int(found["bytes"]))
            return PublishPosition(file, int(found["row"]), offset.offset, found["before"])
    except (ValueError, KeyError, TypeError):
        pass
    raise OttlaError(
        ErrorCode.INVALID_REQUEST,
        f"the group of this publish has the offset {offset.offset} with the metadata "
        f"{offset.metadata!r}, which no publish wrote; choose another --name",
    )


def start_of(position: PublishPosition | None, files: Sequence[SourceFile]) -> tuple[int, int]:
    """Return the index of the file to continue with, and the row in it.

    Raises OttlaError if the files up to the position differ from the published files.
    """
    if position is None:
        return 0, 0
    paths = [file.path for file in files]
    if position.file.path not in paths:
        raise _changed(f"{position.file.path}, which it had come to, is not there any more")
    place = paths.index(position.file.path)
    if _digest(files[:place]) != position.before:
        raise _changed(f"other files stand before {position.file.path} than it published")
    if files[place].size_bytes != position.file.size_bytes:
        raise _changed(
            f"{position.file.path} has {files[place].size_bytes} bytes now, "
            f"{position.file.size_bytes} before"
        )
    return place, position.row


def _digest(files: Sequence[SourceFile]) -> str:
    digest = hashlib.sha256()
    for file in files:
        digest.update(f"{file.path}\n{file.size_bytes}\n".encode())
    return digest.hexdigest()[:16]


def _changed(what: str) -> OttlaError:
    return OttlaError(
        ErrorCode.INVALID_REQUEST,
        f"the source has changed since the last publish: {what}. Nothing was published. Add files "
        "behind the others only, in the order of their names; or publish under another --name, "
        "which begins with the first row",
    )


class _Run:
    """One run of a publish, by a producer that has initialized the transactional id."""

    def __init__(
        self,
        producer: sync.Producer,
        source: PublishSource,
        topic: str,
        group: str,
        given: PublishOptions,
    ) -> None:
        self._producer = producer
        self._source = source
        self._topic = topic
        self._group = group
        self._pace = given["pace"]
        self._most = given["transaction_records"]
        self._on_step = given["on_step"]
        self._on_progress = given["on_progress"]
        self._stride = min(self._pace.rows_at_once, self._most)
        self._began_s = time.monotonic()
        self._begun_s = 0.0  # When the open transaction began; 0 if none is open.
        self._in_transaction = 0
        self.records = self.bytes = self.total = 0

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
        """Commit if the transaction is old or large enough, and wait to keep the rate limits."""
        now_s = time.monotonic()
        delay_s = self._pace.delay_s(self.records, self.bytes, now_s - self._began_s)
        age_s = now_s - self._begun_s
        if self._in_transaction >= self._most or age_s + delay_s >= _TRANSACTION_S:
            self._commit(place, row)
        if delay_s > 0:
            time.sleep(delay_s)

    def _commit(self, place: int, row: int) -> None:
        self._producer.flush()
        self._on_step("records sent")
        position = position_at(self._source.files, place, row, self.total)
        self._producer.send_offsets_to_transaction(
            {TopicPartition(self._topic, 0): as_offset(position)}, self._group
        )
        self._on_step("position added")
        self._producer.commit_transaction()
        self._on_step("committed")
        self._begun_s, self._in_transaction = 0.0, 0
        files = self._source.files
        self._on_progress(
            PublishProgress(
                self.records, self.bytes, self.total, files[place].path, place, len(files)
            )
        )


def _position(brokers: Brokers, group: str, topic: str) -> PublishPosition | None:
    with brokers.admin() as admin:
        found = admin.groups.offsets(group).get(TopicPartition(topic, 0))
    return None if found is None else from_offset(found)


def _plan(source: PublishSource, position: PublishPosition | None, name: str) -> PublishResult:
    """Return the result of a dry run: the files and rows that are left to publish."""
    first, row = start_of(position, source.files)
    counts = [source.row_count(place) for place in range(first, len(source.files))]
    known = [count for count in counts if count is not None]
    left = sum(known) - row if len(known) == len(counts) else None
    files_left = len(counts)
    if counts and counts[0] == row:
        files_left -= 1
    total = 0 if position is None else position.records
    files = len(source.files)
    return PublishResult(0, 0, total, files, 0.0, name, files_left, left, source.left_out)


def _name_of(source: str, topic: str) -> str:
    """Return the default name of a publish of this source into this topic, equal in each run."""
    where = source if "://" in source else str(folder_of(source))
    return hashlib.sha256(f"{where}\n{topic}".encode()).hexdigest()[:16]
