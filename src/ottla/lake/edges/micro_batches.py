"""The stream reader of the data source for any Spark from 4.0 on."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from ottla.lake.source.planner import StreamPlanner
from ottla.lake.source.source_options import StreamOptions
from ottla.lake.source.stream_offset import StreamOffset, from_json, to_json
from ottla.lake.source.tasks import last_load, read_task


class MicroBatchReader(DataSourceStreamReader):  # type: ignore[misc]  # pyspark is untyped here.
    """Plans in a process on the driver's machine that lives as long as the query.

    Reads in tasks, which get a copy without a planner. Waits while no broker answers.

    Spark resumes a query with `partitions(x, x)`, where x is its newest offset. If its first
    micro-batch was not committed, it asks for the initial offset again, which may have changed by
    now (`latest`). So the end of a first micro-batch also contains the initial offset.
    """

    def __init__(self, options: StreamOptions) -> None:
        self._options = options
        self._planner: StreamPlanner | None = None
        self._initial: StreamOffset | None = None

    @property
    def planner(self) -> StreamPlanner:
        """Return the planner, created on first use because it cannot be copied to tasks."""
        if self._planner is None:
            self._planner = StreamPlanner(self._options, last_load(self._options))
        return self._planner

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802  # Spark's name, as those below.
        if self._initial is None:
            self._initial = self.planner.when_reachable(self.planner.initial)
        return to_json(self._initial)

    def _after(self, given: Mapping[str, Any], *, limited: bool) -> dict[str, Any]:
        """Return the end of the micro-batch that starts at `given`; equal if nothing is new."""
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
    """The reader for Spark 4.0 and 4.1, which read everything available and pass no start offset.

    For a new query they ask for the latest offset first, then for the initial one.
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
