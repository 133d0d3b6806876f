"""One or several topics as a DataFrame, planned on the driver and read in tasks."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from ottla.lake.source.narrowing import Narrowing, condition_of
from ottla.lake.source.source_options import StreamOptions
from ottla.lake.source.tasks import planned_tasks, read_task


class OttlaReader(DataSourceReader):  # type: ignore[misc]  # pyspark's classes are untyped here.
    """Plans on the driver, reads in the tasks."""

    def __init__(self, options: StreamOptions) -> None:
        self._options = options
        self._narrowing = Narrowing()
        self.pushFilters = _PushFilters(self._narrowing)

    def partitions(self) -> Sequence[InputPartition]:
        """Return tasks for the wanted ranges of offsets."""
        tasks = planned_tasks(self._options, self._narrowing)
        # Without any partition, Spark would read an unknown one.
        return [InputPartition(ranges) for ranges in tasks or [()]]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read_task(partition.value, self._options)


class _PushFilters:
    """Provides `pushFilters` of a reader, which Spark calls if its setting allows it.

    Spark refuses a reader with its own `pushFilters` if `spark.sql.python.filterPushdown.enabled`
    is false, the default. So this object names the method of Spark's own class as its function.
    """

    # Spark has this method from 4.1 on.
    __func__ = staticmethod(getattr(DataSourceReader, "pushFilters", id))

    def __init__(self, narrowing: Narrowing) -> None:
        self._narrowing = narrowing

    def __call__(self, filters: Iterable[Any]) -> Iterable[Any]:
        """Narrow the plan; return the filters that Spark still has to apply."""
        for pushed in filters:
            condition = condition_of(pushed)
            if condition is None or not self._narrowing.takes(condition):
                yield pushed
