"""Sends lines to a topic for `ottla produce`; counts records, and shows a progress bar."""

import asyncio
import sys
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, NamedTuple

from ottla.base.errors import ErrorCode, OttlaError
from ottla.cli.common.connect import administration
from ottla.cli.produce.json_lines import record_of
from ottla.cli.produce.lines import lines_of
from ottla.client import (
    BrokerRefused,
    ClientError,
    ConfigResourceType,
    Delivery,
    Producer,
    ProducerOptions,
)
from ottla.client.connection.cluster import connections_of
from ottla.client.producer.options import Acks, Codec
from ottla.diagnosis.partitions import partitions_of

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

# Shorter operations show no bar.
_PATIENCE_S = 0.4


class Bar:
    """Counts bytes read and records delivered; shows them on a terminal if it takes long."""

    def __init__(self, title: str, total_bytes: int | None, *, shown: bool = True) -> None:
        self.read_bytes = 0
        self._title = title
        self._total = total_bytes
        self._started_s = monotonic()
        self._wanted = shown and sys.stderr.isatty()
        self._bar: Progress | None = None
        self._task: TaskID | None = None

    def on_read(self, count: int) -> None:
        """Count bytes read."""
        self.read_bytes += count

    def update(self, records: int) -> None:
        """Set the number of delivered records."""
        if not self._wanted:
            return
        elapsed_s = monotonic() - self._started_s
        if self._bar is None:
            if elapsed_s < _PATIENCE_S:
                return
            self._bar = self._open()
        assert self._task is not None
        self._bar.update(
            self._task,
            completed=self.read_bytes,
            records=f"{records:,} records",
            rate=f"{records / elapsed_s:,.0f}/s",
        )

    def close(self) -> None:
        """Remove the bar."""
        if self._bar is not None:
            self._bar.stop()

    def _open(self) -> "Progress":
        # Imported only if the bar is shown, because the import is slow.
        from rich.console import Console  # noqa: PLC0415
        from rich.progress import (  # noqa: PLC0415
            BarColumn,
            DownloadColumn,
            Progress,
            TextColumn,
            TimeRemainingColumn,
        )

        bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            DownloadColumn(),
            TextColumn("{task.fields[records]}"),
            TextColumn("{task.fields[rate]}"),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            transient=True,
        )
        self._task = bar.add_task(self._title, total=self._total, records="", rate="")
        bar.start()
        return bar


# Errors that concern one record: brokers may accept later records.
_OF_ONE_RECORD = frozenset(
    {
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.RECORD_LIST_TOO_LARGE,
        ErrorCode.INVALID_RECORD,
        ErrorCode.INVALID_TIMESTAMP,
        ErrorCode.CORRUPT_MESSAGE,
    }
)
_BATCH_BYTES = 256 * 1024
_LIMIT = "max.message.bytes"


class Form(NamedTuple):
    """How lines are converted to records, and how the records are sent."""

    as_json: bool
    separator: bytes | None
    null: bytes | None
    headers: list[tuple[str, bytes | None]]
    partition: int | None
    acks: Acks
    compression: Codec


@dataclass(slots=True)
class Sent:
    """The result so far: numbers of delivered and failed records, and the first error."""

    started_s: float = field(default_factory=monotonic)
    finished_s: float = 0.0
    accepted: int = 0
    delivered: int = 0
    failed: int = 0
    first_error: OttlaError | None = None
    # Whether an error makes sending more records useless.
    final: bool = False
    created: bool = False
    interrupted: bool = False
    # For each partition: number of delivered records, first offset, last offset (-1 with acks=0).
    partitions: dict[int, tuple[int, int, int]] = field(default_factory=dict)

    def on_delivery(self, delivery: Delivery) -> None:
        if delivery.error is not None:
            self.failed += delivery.record_count
            self.on_error(delivery.error)
            return
        self.delivered += delivery.record_count
        count, first, last = self.partitions.get(delivery.partition, (0, -1, -1))
        base = delivery.base_offset
        if base >= 0:
            first = base if first < 0 else min(first, base)
            last = max(last, base + delivery.record_count - 1)
        self.partitions[delivery.partition] = (count + delivery.record_count, first, last)

    def on_error(self, error: OttlaError) -> None:
        self.first_error = self.first_error or error
        self.final |= error.code not in _OF_ONE_RECORD


async def send(bootstrap: str, topic: str, files: Sequence[Path], form: Form, bar: Bar) -> Sent:
    """Send the lines of `files`, or of standard input, and wait until each is delivered or failed.

    Raises OttlaError if no record can be sent.
    """
    sent = Sent()
    batch_bytes = await _look(bootstrap, topic, sent)
    settings = ProducerOptions(
        acks=form.acks,
        compression_type=form.compression,
        delivery_timeout_ms=30_000,
        client_id="ottla-cli",
        batch_size=batch_bytes,
    )
    try:
        async with Producer(bootstrap, **settings, on_delivery=sent.on_delivery) as producer:
            chosen = () if form.partition is None else (form.partition,)
            await partitions_of(connections_of(producer), topic, chosen)
            sent.started_s = monotonic()
            try:
                await _send_all(producer, topic, files, form, bar, sent)
            except asyncio.CancelledError:
                # Ctrl-C: the lines that were read are still sent and counted.
                sent.interrupted = True
            await producer.flush()
            sent.finished_s = monotonic()
    finally:
        bar.close()
    return sent


async def _send_all(
    producer: Producer, topic: str, files: Sequence[Path], form: Form, bar: Bar, sent: Sent
) -> None:
    async with aclosing(lines_of(files, bar.on_read)) as source:
        async for lines in source:
            await _send_lines(producer, topic, lines, form, sent)
            bar.update(sent.delivered)
            if sent.final:
                return


async def _look(bootstrap: str, topic: str, sent: Sent) -> int:
    """Find out whether the topic exists; return the topic's limit of the batch size.

    Batches are kept below this limit, so that only a record that is itself too large fails.
    """
    async with administration(bootstrap) as admin:
        sent.created = topic not in await connections_of(admin).topic_names()
        if sent.created:
            return _BATCH_BYTES
        try:
            configs = await admin.configs.describe(ConfigResourceType.TOPIC, topic, [_LIMIT])
        except BrokerRefused:
            # A user may have permission to write but not to read settings.
            return _BATCH_BYTES
    limit = configs[_LIMIT].value if _LIMIT in configs else None
    return max(1, min(_BATCH_BYTES, int(limit))) if limit else _BATCH_BYTES


async def _send_lines(
    producer: Producer, topic: str, lines: list[bytes], form: Form, sent: Sent
) -> None:
    """Pass the lines to the producer; count those that it refuses."""
    if form.as_json:
        await _send_json(producer, topic, lines, form, sent)
        return
    values: list[bytes | None] = list(lines)
    keys: list[bytes | None] | None = None
    fault: OttlaError | None = None
    if form.separator is not None:
        keys, values = _split(lines, form.separator)
        if len(keys) < len(lines):
            fault = _unsplit(lines[len(keys)], form.separator, sent.accepted + len(keys) + 1)
    if form.null is not None:
        values = [None if value == form.null else value for value in values]
        keys = keys and [None if key == form.null else key for key in keys]
    sent.accepted += len(values)
    try:
        if form.headers:
            for number, value in enumerate(values):
                key = keys[number] if keys else None
                await producer.send(
                    topic, value, key, partition=form.partition, headers=form.headers
                )
        elif values:
            await producer.send_batch(topic, values, keys, partition=form.partition)
    except ClientError as error:
        # The error was raised before this and the remaining lines were sent.
        fault = error
    if fault is not None:
        sent.on_error(fault)
        sent.final = True


async def _send_json(
    producer: Producer, topic: str, lines: list[bytes], form: Form, sent: Sent
) -> None:
    try:
        for line in lines:
            record = record_of(line, sent.accepted + 1)
            sent.accepted += 1
            await producer.send(
                topic,
                record.value,
                record.key,
                partition=record.partition if form.partition is None else form.partition,
                timestamp_ms=record.timestamp_ms,
                headers=[*record.headers, *form.headers],
            )
    except OttlaError as error:
        sent.on_error(error)
        sent.final = True


def _split(lines: list[bytes], separator: bytes) -> tuple[list[bytes | None], list[bytes | None]]:
    """Split lines into keys and values; stop at the first line without the separator."""
    keys: list[bytes | None] = []
    values: list[bytes | None] = []
    for line in lines:
        key, found, value = line.partition(separator)
        if not found:
            break
        keys.append(key)
        values.append(value)
    return keys, values


def _unsplit(line: bytes, separator: bytes, number: int) -> OttlaError:
    shown = line[:60].decode(errors="replace")
    return OttlaError(
        ErrorCode.INVALID_RECORD,
        f"line {number} has no key separator {separator.decode()!r}: {shown!r}; it and what "
        "follows was not sent",
    )
