"""A topic, or several, as one DataFrame: planned on the driver, read in the tasks."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from ottla.lake.stream.dividing import planned_tasks
from ottla.lake.stream.narrowing import Narrowing
from ottla.lake.stream.options import SourceOptions
from ottla.lake.stream.reading import read_task


class OttlaReader(DataSourceReader):  # type: ignore[misc]  # pyspark's classes are untyped here.
    """Plans on the driver, reads in the tasks."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options
        self._narrowing = Narrowing()

    def pushFilters(self, filters: Iterable[Any]) -> Iterable[Any]:  # noqa: N802  # Spark's name.
        """Narrow the plan; return the filters that Spark still has to apply."""
        from ottla.lake.stream.filters import condition_of  # noqa: PLC0415  # Spark 4.1.

        for pushed in filters:
            condition = condition_of(pushed)
            if condition is None or not self._narrowing.takes(condition):
                yield pushed

    def partitions(self) -> Sequence[InputPartition]:
        """Ranges of the offsets that are wanted, each in one task."""
        tasks = planned_tasks(self._options, self._narrowing)
        # Spark reads an unknown partition where there is none.
        return [InputPartition(ranges) for ranges in tasks or [()]]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read_task(partition.value, self._options)
