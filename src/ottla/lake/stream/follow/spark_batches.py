"""Micro-batches by Structured Streaming: a source of ranges, and a commit for each of its batches.

The checkpoint is a temporary one of Spark's, made anew from the table's positions at each start:
it can be neither lost, nor behind the table, nor ahead of it.
"""

import json
import threading
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader
from pyspark.sql.types import StructType

from ottla.base.errors import ErrorCode, OttlaError
from ottla.lake.datasource import stream_reader
from ottla.lake.spark import cause_of
from ottla.lake.stream.follow.batches import Commit
from ottla.lake.stream.follow.ending import Stop
from ottla.lake.stream.micro_batches import MicroBatchReader
from ottla.lake.stream.options import parse_options
from ottla.lake.stream.reading import TaskRanges

_SCHEMA = pa.schema([("partition", pa.int32()), ("end", pa.int64())])
# What the status of a query begins with once its source has answered.
_IDLE = "Waiting for"
# How soon a stop is noticed.
_LOOK_S = 0.2


class RangeSource(DataSource):  # type: ignore[misc]  # pyspark's classes are untyped here.
    """The data source `ottla-ranges`: a row for each range of offsets, and no records."""

    @classmethod
    def name(cls) -> str:
        return "ottla-ranges"

    def schema(self) -> str:
        return "partition INT, end BIGINT"

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: ARG002, N802
        return _as_ranges(stream_reader(parse_options(self.options)))


def _as_ranges(reader: MicroBatchReader) -> MicroBatchReader:
    """The reader, whose rows are its ranges."""
    reader.rows_of = range_rows
    return reader


def range_rows(ranges: TaskRanges, _options: object) -> Iterator[pa.RecordBatch]:
    """The last range of each partition says how far a micro-batch goes."""
    ends: dict[int, int] = {}
    for one in ranges:
        ends[one.wanted.partition] = max(one.wanted.end, ends.get(one.wanted.partition, 0))
    yield pa.RecordBatch.from_pydict(
        {"partition": list(ends), "end": list(ends.values())}, schema=_SCHEMA
    )


class SparkBatches:
    """A query on the session `spark`."""

    def __init__(self, spark: Any, options: Mapping[str, str], *, poll_s: float) -> None:
        self._spark = spark
        self._options = options
        self._poll_s = poll_s

    def run(
        self, positions: Mapping[int, int], commit: Commit, stop: Stop, is_up: threading.Event
    ) -> None:
        failures: list[BaseException] = []
        running = threading.Lock()

        def on_batch(frame: Any, _batch_id: int) -> None:
            is_up.set()
            ends: dict[int, int] = {}
            for row in frame.collect():
                ends[row.partition] = max(row.end, ends.get(row.partition, 0))
            with running:
                try:
                    if stop.is_set():
                        return  # The temporary checkpoint goes with the query: it is read again.
                    commit(ends)
                except BaseException as error:
                    failures.append(error)
                    raise

        query = self._start(positions, on_batch)
        try:
            while not query.awaitTermination(_LOOK_S):
                if not is_up.is_set() and query.status["message"].startswith(_IDLE):
                    is_up.set()
                if stop.is_set():
                    with running:  # A commit that runs is finished.
                        query.stop()
        except Exception as error:
            if isinstance(error, OttlaError):
                raise
            if not failures:
                raise OttlaError(
                    ErrorCode.UNKNOWN_SERVER_ERROR, f"the query failed: {cause_of(str(error))}"
                ) from error
        finally:
            query.stop()
        if failures:
            raise failures[0]

    def _start(self, positions: Mapping[int, int], on_batch: Any) -> Any:
        self._spark.dataSource.register(RangeSource)
        places = {str(p): offset for p, offset in sorted(positions.items())}
        start = json.dumps({self._options["subscribe"]: places}) if places else "earliest"
        writer = (
            self._spark.readStream.format(RangeSource.name())
            .options(**self._options, startingOffsets=start)
            .load()
            .writeStream.foreachBatch(on_batch)
        )
        return writer.trigger(processingTime=f"{int(self._poll_s * 1000)} milliseconds").start()
