"""The stream writer for Spark from 4.1 on, which gives Arrow batches. Imported there only."""

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamArrowWriter

from ottla.lake.edges.writer import Made, OttlaStreamWriter


class OttlaArrowStreamWriter(OttlaStreamWriter, DataSourceStreamArrowWriter):  # type: ignore[misc]
    """A stream writer that gets Arrow batches, so that no rows have to be converted."""

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Made:
        return self.write_batches(iterator)
