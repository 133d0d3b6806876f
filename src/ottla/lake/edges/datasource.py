"""The PySpark data source `ottla`, which reads topics as a DataFrame or a stream, and the sink.

    frame = spark.read.format("ottla").option("subscribe", "flights").load()
    frame = spark.readStream.format("ottla").option("subscribePattern", "flights-.*").load()

`source_options` declares the options, and docs/how-to/read-a-topic.md explains them. A partition
that `startingOffsets` does not name starts at the earliest offset, and ends at the latest. A task
reads ranges of offsets of about `bytesPerTask`. Aborted transactions are left out. If an offset of
a range cannot be explained, the query fails.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyspark
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)
from pyspark.sql.types import StructType

from ottla.base.errors import ErrorCode, OttlaError
from ottla.lake.edges.sink import OttlaStreamWriter, OttlaWriter
from ottla.lake.edges.sink_options import sink_options
from ottla.lake.model.schema import SOURCE_COLUMNS
from ottla.lake.source.narrowing import Narrowing, condition_of
from ottla.lake.source.planner import StreamPlanner
from ottla.lake.source.source_options import LATEST, StreamOptions, parse_options, wrong
from ottla.lake.source.stream_offset import StreamOffset, from_json, to_json
from ottla.lake.source.tasks import last_load, planned_tasks, read_task

SPARK_VERSION = tuple(int(part) for part in pyspark.__version__.split(".")[:2])

if SPARK_VERSION >= (4, 2):
    from pyspark.sql.streaming.datasource import (
        ReadAllAvailable,
        ReadLimit,
        ReadMaxBytes,
        ReadMaxRows,
        ReadMinRows,
        SupportsTriggerAvailableNow,
    )


class OttlaReader(DataSourceReader):  # type: ignore[misc]  # pyspark's classes are untyped here.
    """Reads topics as a DataFrame: plans on the driver, and reads in tasks."""

    def __init__(self, options: StreamOptions) -> None:
        self._options = options
        self._narrowing = Narrowing()
        self.pushFilters = _PushFilters(self._narrowing)

    def partitions(self) -> Sequence[InputPartition]:
        """Return the tasks of the query, as Spark's partitions."""
        tasks = planned_tasks(self._options, self._narrowing)
        # Return at least one partition. Without any, Spark would read one that is not planned here.
        return [InputPartition(ranges) for ranges in tasks or [()]]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read_task(partition.value, self._options)


class _PushFilters:
    """The method `pushFilters` of a reader, which Spark calls if filter pushdown is enabled.

    By default, `spark.sql.python.filterPushdown.enabled` is false. Then Spark refuses a reader that
    overrides `pushFilters`, which it checks by `__func__`. So `__func__` is the method of Spark's
    own class here.
    """

    # Spark has this method from 4.1 on.
    __func__ = staticmethod(getattr(DataSourceReader, "pushFilters", id))

    def __init__(self, narrowing: Narrowing) -> None:
        self._narrowing = narrowing

    def __call__(self, filters: Iterable[Any]) -> Iterable[Any]:
        """Narrow the plan, and yield the filters that Spark still has to apply."""
        for pushed in filters:
            condition = condition_of(pushed)
            if condition is None or not self._narrowing.takes(condition):
                yield pushed


class MicroBatchReader(DataSourceStreamReader):  # type: ignore[misc]  # pyspark is untyped here.
    """Reads topics as a stream.

    It plans in a process on the driver's machine that lives as long as the query, and reads in
    tasks, which get a copy without the planner. It waits while no broker answers.

    Spark resumes a query with `partitions(x, x)`, where x is its newest offset. If its first
    micro-batch was not committed, Spark asks for the initial offset again, which may have changed
    (`latest`). So the end of the first micro-batch also contains the initial offset.
    """

    def __init__(self, options: StreamOptions) -> None:
        self._options = options
        self._planner: StreamPlanner | None = None
        self._initial: StreamOffset | None = None

    @property
    def planner(self) -> StreamPlanner:
        """Return the planner. It is created on first use, as it cannot be copied to tasks."""
        if self._planner is None:
            self._planner = StreamPlanner(self._options, last_load(self._options))
        return self._planner

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802  # Spark's name, as those below.
        if self._initial is None:
            self._initial = self.planner.when_reachable(self.planner.initial)
        return to_json(self._initial)

    def _after(self, given: Mapping[str, Any], *, limited: bool) -> dict[str, Any]:
        """Return the end of the micro-batch that starts at `given`; `given` if nothing is new."""
        start, planner = from_json(given), self.planner
        after = planner.when_reachable(lambda: planner.ahead(start, limited=limited))
        found = dict(given) if after == start else to_json(after)
        return found if start != self._initial else {**found, "initial": to_json(start)}

    def partitions(
        self, start: Mapping[str, Any], end: Mapping[str, Any]
    ) -> Sequence[InputPartition]:
        if "initial" in end:
            self._initial = from_json(end["initial"])
        known, wanted, planner = from_json(start), from_json(end), self.planner
        tasks = planner.when_reachable(lambda: planner.ranges(known, wanted))
        return [InputPartition(ranges) for ranges in tasks]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read_task(partition.value, self._options)

    def stop(self) -> None:
        if self._planner is not None:
            self._planner.close()


class UnlimitedReader(MicroBatchReader):
    """The stream reader for Spark 4.0 and 4.1, which pass no start offset and no read limit.

    For a new query, Spark asks for the latest offset first, and then for the initial offset.
    """

    _given: Mapping[str, Any] | None = None  # The newest offset that Spark has received.

    def latestOffset(self) -> Mapping[str, Any]:  # noqa: N802
        self._given = self._after(self._given or self.initialOffset(), limited=False)
        return self._given

    def partitions(
        self, start: Mapping[str, Any], end: Mapping[str, Any]
    ) -> Sequence[InputPartition]:
        self._given = end
        return super().partitions(start, end)


if SPARK_VERSION >= (4, 2):

    class LimitedReader(MicroBatchReader, SupportsTriggerAvailableNow):  # type: ignore[misc]
        """The stream reader for Spark 4.2 and later, which pass a start offset and a read limit."""

        def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802  # Spark's name, as those below.
            options = self._options
            if options.records_max is not None:
                return ReadMaxRows(options.records_max)
            if options.bytes_max is not None:
                return ReadMaxBytes(options.bytes_max)
            # Any minimum may be returned here, because the planner applies both minimums.
            if options.records_min is not None or options.bytes_min is not None:
                return ReadMinRows(options.records_min or 1)
            return ReadAllAvailable()

        def latestOffset(self, start: Mapping[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
            return self._after(start, limited=not isinstance(limit, ReadAllAvailable))

        def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
            self.planner.when_reachable(self.planner.fix_target)

        def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802
            newest = self.planner.newest
            return to_json(newest) if newest.ids else None


class OttlaSource(DataSource):  # type: ignore[misc]  # pyspark's classes are untyped here.
    """The data source, which Spark finds in `pyspark_ottla`. See `source_options` for options."""

    @classmethod
    def name(cls) -> str:
        return "ottla"

    def schema(self) -> str:
        if any(name.startswith("option.") for name in self.options):
            wrong(
                "Spark gives a Python data source no options when it reads a table of a catalog: "
                "write CREATE TEMPORARY VIEW … USING ottla OPTIONS (…) in place of CREATE TABLE"
            )
        columns = parse_options(self.options).columns
        return ", ".join(f"{name} {SOURCE_COLUMNS[name].spark_type}" for name in columns)

    def reader(self, schema: StructType) -> DataSourceReader:  # noqa: ARG002  # Spark's signature.
        return OttlaReader(parse_options(self.options))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: ARG002, N802
        return stream_reader(parse_options(self.options, start="latest"))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:
        options = sink_options(self.options)
        if overwrite:
            raise OttlaError(
                ErrorCode.INVALID_REQUEST,
                'a topic cannot be overwritten; use .mode("append"), or delete its records first '
                "(`ottla topic delete-records`)",
            )
        return OttlaWriter(options, schema)

    # Spark sets `overwrite` for the output mode complete. Rows are appended, as in its Kafka sink.
    def streamWriter(self, schema: StructType, overwrite: bool) -> OttlaStreamWriter:  # noqa: ARG002, N802
        return OttlaStreamWriter(sink_options(self.options), schema)


def stream_reader(options: StreamOptions) -> MicroBatchReader:
    """Return the stream reader for the installed version of Spark."""
    if options.end != LATEST:
        wrong("a stream has no end: leave out ending…, and stop it by trigger(availableNow=True)")
    if SPARK_VERSION >= (4, 2):
        return LimitedReader(options)
    if options.has_limits:
        wrong(
            "limits of micro-batches (maxOffsetsPerTrigger, maxBytesPerTrigger, min…) need Spark "
            f"4.2, and this is {pyspark.__version__}: leave them out, or install pyspark 4.2"
        )
    return UnlimitedReader(options)
