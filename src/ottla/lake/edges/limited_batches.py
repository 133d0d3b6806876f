"""The stream reader with admission control. Imported only from Spark 4.2 on."""

from collections.abc import Mapping
from typing import Any

from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)

from ottla.lake.edges.micro_batches import MicroBatchReader
from ottla.lake.source.stream_offset import to_json


class LimitedReader(MicroBatchReader, SupportsTriggerAvailableNow):  # type: ignore[misc]
    """A reader that gets a limit from Spark, or is asked for all available records."""

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802  # Spark's name, as those below.
        options = self._options
        if options.records_max is not None:
            return ReadMaxRows(options.records_max)
        if options.bytes_max is not None:
            return ReadMaxBytes(options.bytes_max)
        # Any minimum will do here: the planner applies both minimums.
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
