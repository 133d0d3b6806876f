"""A topic, or several, as one DataFrame: planned on the driver, read in the tasks."""

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader

from ottla.lake.cluster import connect
from ottla.lake.loads.boundaries import Limits, limits_of_read
from ottla.lake.plan import Boundary
from ottla.lake.replica.looking import warn_of_log_dirs
from ottla.lake.source import Cluster, TopicDescription
from ottla.lake.stream.dividing import TopicRead, divided
from ottla.lake.stream.held_back import held_back_in
from ottla.lake.stream.narrowing import Narrowing
from ottla.lake.stream.options import SourceOptions
from ottla.lake.stream.reading import RangePartition, judge_loss, read_partition
from ottla.lake.stream.topics import boundaries, chosen
from ottla.lake.tables.opening import existing_table

_log = logging.getLogger(__name__)


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

    def partitions(self) -> Sequence[RangePartition]:
        """Ranges of the offsets that are wanted, each in one task."""
        options = self._options
        planned: list[TopicRead] = []
        positions = last_load(options)
        with closing(connect(options.bootstrap, access=options.access)) as cluster:
            names = chosen(options, cluster.topic_names() if options.topic_pattern else ())
            starts, ends = boundaries(options.start, names), boundaries(options.end, names)
            for name in names:
                described = cluster.describe(name)
                warn_of_log_dirs(described, options.log_dirs)
                limits = self._limits(cluster, described, starts[name], ends[name], positions)
                planned.append(TopicRead(described, limits))
                found = held_back_in(
                    cluster, options.bootstrap, described, limits.ends, options.access
                )
                for line in found:
                    _log.warning("%s", line)
        for described, limits in planned:
            judge_loss(described.topic, limits.lost, options)
        # Spark reads an unknown partition where there is none.
        return divided(planned, options) or [RangePartition(())]

    def _limits(
        self,
        cluster: Cluster,
        described: TopicDescription,
        start: Boundary,
        end: Boundary,
        positions: Mapping[int, int],
    ) -> Limits:
        since_ms = self._narrowing.since_ms
        since = {} if since_ms is None else cluster.offsets_at(described.topic, max(0, since_ms))
        narrow = partial(self._narrowing.narrowed, described.topic, since=since)
        return limits_of_read(cluster, described, start, end, positions, narrow)

    def read(self, partition: RangePartition) -> Iterator[pa.RecordBatch]:
        return read_partition(partition, self._options)


def last_load(options: SourceOptions) -> Mapping[int, int]:
    """The positions that the last load left in the table of the options."""
    if options.table is None:
        return {}
    manifest, _ = existing_table(options.table).latest()
    return manifest.positions if manifest else {}
