"""The stream reader of the data source for any Spark from 4.0 on."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from ottla.lake.stream.dividing import last_load
from ottla.lake.stream.offsets import StreamOffset, from_json, to_json
from ottla.lake.stream.options import SourceOptions
from ottla.lake.stream.planner import StreamPlanner
from ottla.lake.stream.reading import TaskRanges, read_task


class MicroBatchReader(DataSourceStreamReader):  # type: ignore[misc]  # pyspark is untyped here.
    """Plans in a process of the driver's machine that lives as long as the query.

    Reads in the tasks, which get a copy that has planned nothing.
    """

    def __init__(self, options: SourceOptions) -> None:
        self._options = options
        self._planner: StreamPlanner | None = None
        self._offset = StreamOffset()  # What was given last.
        # What a task gives for its ranges: their records, unless another source sets this.
        self.rows_of: Callable[[TaskRanges, SourceOptions], Iterator[pa.RecordBatch]] = read_task

    @property
    def planner(self) -> StreamPlanner:
        """Made where it is first asked: it cannot be copied to tasks."""
        if self._planner is None:
            self._planner = StreamPlanner(self._options, last_load(self._options))
        return self._planner

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802  # Spark's name, as those below.
        self._offset = self.planner.initial()
        return to_json(self._offset)

    def partitions(
        self, start: Mapping[str, Any], end: Mapping[str, Any]
    ) -> Sequence[InputPartition]:
        return [
            InputPartition(one) for one in self.planner.ranges(from_json(start), from_json(end))
        ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return self.rows_of(partition.value, self._options)

    def stop(self) -> None:
        if self._planner is not None:
            self._planner.close()


class UnlimitedReader(MicroBatchReader):
    """For Spark 4.0 and 4.1, which take whatever is there."""

    def latestOffset(self) -> dict[str, Any]:  # noqa: N802
        self._offset = self.planner.latest(self._offset, limited=False)
        return to_json(self._offset)
