"""The PySpark sink `ottla`: `writeStream.format("ottla")` and `write.format("ottla")`.

    frame.writeStream.format("ottla").option("topic", "alerts").option("checkpointLocation", …)

Tasks turn rows into record batches, but send nothing. Spark brings them to the driver, which sends
the batches of all tasks of an epoch in one transaction (`sink_commit`). So a task that is retried
or runs twice doubles no row, and readers see an epoch as a whole or not at all. `sink_options` has
the options.
"""

import random
import time
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyspark.sql.datasource
from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamWriter,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from ottla.client import PreparedBatch
from ottla.client.ranges import RangeClient
from ottla.lake.edges.sink_batches import Preparer
from ottla.lake.edges.sink_commit import SERIES_OF_QUERY, OnStep, Series, commit_portion
from ottla.lake.edges.sink_options import SinkOptions
from ottla.lake.rows.publish_row import require_columns, rows

# The local property with the id of a streaming query, which Spark sets for its tasks.
_QUERY = "sql.streaming.queryId"
_ROWS_AT_ONCE = 10_000
# From 4.1 on, Spark gives stream writers Arrow batches instead of rows.
_StreamWriter: Any = getattr(
    pyspark.sql.datasource, "DataSourceStreamArrowWriter", DataSourceStreamWriter
)


@dataclass
class Made(WriterCommitMessage):  # type: ignore[misc]  # pyspark's classes are untyped here.
    """The message of a task to the driver."""

    batches: list[PreparedBatch]
    query: str


class _Tasks:
    """The part that runs in tasks, for streams and for batch writes."""

    def __init__(
        self, options: SinkOptions, schema: StructType, on_step: OnStep = lambda _step: None
    ) -> None:
        types = {field.name: field.dataType.simpleString() for field in schema.fields}
        require_columns(types, has_topic=options.topic is not None)
        self._options = options
        self._names = list(types)
        self._on_step = on_step

    def write_batches(self, iterator: Iterator[pa.RecordBatch]) -> Made:
        query = TaskContext.get().getLocalProperty(_QUERY) or ""
        self._on_step("task began")
        options = self._options
        with closing(
            RangeClient(
                options.bootstrap, client_id="ottla-sink", config=options.access.client_config()
            )
        ) as client:
            preparer = self._preparer(client)
            full = (preparer.add(row) for batch in iterator for row in rows(batch))
            batches = [batch for batch in full if batch is not None]
            made = Made([*batches, *preparer.rest()], query)
        self._on_step("task done")
        return made

    def _preparer(self, client: RangeClient) -> Preparer:
        return Preparer(
            self._options.topic,
            lambda topic: len(client.topic(topic).partitions),
            lambda: time.time_ns() // 1_000_000,
            compression=self._options.compression,
            batch_bytes=self._options.batch_bytes,
            # Start at a random partition, so that small tasks of one batch do not all write to the
            # first partition.
            first_partition=random.randrange(1 << 16),
        )


class OttlaStreamWriter(_Tasks, _StreamWriter):  # type: ignore[misc]
    """Writes a stream: each epoch is one transaction."""

    def write(self, iterator: Iterator[Any]) -> Made:
        gives_rows = _StreamWriter is DataSourceStreamWriter
        return self.write_batches(as_arrow(iterator, self._names) if gives_rows else iterator)

    def commit(self, messages: Sequence[Made | None], batchId: int) -> None:  # noqa: N803  # Spark's.
        made = _all_of(messages)
        if not made:
            return
        query = made[0].query
        options = self._options
        named, first = options.first_epoch or (None, None)
        series = Series(
            options.bootstrap,
            f"{SERIES_OF_QUERY}{query}",
            options.transaction_timeout_ms,
            first if named == query else None,
            options.access,
        )
        self._on_step(f"epoch {batchId}")
        commit_portion(series, batchId, _batches(made), options.topic, self._on_step)

    def abort(self, messages: Sequence[Made | None], batchId: int) -> None:  # noqa: N803
        """Do nothing, as nothing was sent."""


def as_arrow(iterator: Iterable[Any], names: list[str]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of Spark 4.0 as Arrow batches."""
    found: list[Any] = []
    for row in iterator:
        found.append(row)
        if len(found) == _ROWS_AT_ONCE:
            yield _batch_of(found, names)
            found = []
    if found:
        yield _batch_of(found, names)


def _batch_of(found: list[Any], names: list[str]) -> pa.RecordBatch:
    columns = {name: [row[place] for row in found] for place, name in enumerate(names)}
    if "headers" in columns:
        columns["headers"] = [
            None if entry is None else [{"key": pair[0], "value": pair[1]} for pair in entry]
            for entry in columns["headers"]
        ]
    return pa.RecordBatch.from_pydict(columns)


class OttlaWriter(_Tasks, DataSourceArrowWriter):  # type: ignore[misc]
    """Writes a batch DataFrame in one transaction; with the option `id`, once in several runs."""

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Made:
        return self.write_batches(iterator)

    def commit(self, messages: Sequence[Made | None]) -> None:
        options = self._options
        name = f"{SERIES_OF_QUERY}{options.id or uuid.uuid4().hex}"
        series = Series(
            options.bootstrap, name, options.transaction_timeout_ms, access=options.access
        )
        made = _all_of(messages)
        mark_topic = options.topic if options.id else None
        commit_portion(
            series, 0, _batches(made), mark_topic, self._on_step, marked=bool(options.id)
        )

    def abort(self, messages: Sequence[Made | None]) -> None:
        """Do nothing, as nothing was sent."""


def _all_of(messages: Sequence[Made | None]) -> list[Made]:
    """Return the messages of all tasks, in the order of their partitions."""
    made = [message for message in messages if message is not None]
    assert len(made) == len(messages), "Spark commits although a task failed"
    return made


def _batches(made: Sequence[Made]) -> Iterator[PreparedBatch]:
    for one in made:
        yield from one.batches
