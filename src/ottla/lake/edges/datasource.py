"""The PySpark data source `ottla`: topics as a DataFrame, or as a stream; and the sink.

    frame = spark.read.format("ottla").option("subscribe", "flights").load()
    frame = spark.readStream.format("ottla").option("subscribePattern", "flights-.*").load()

`stream.options` has the table of options, docs/how-to/read-a-topic.md what they do. Partitions that
`startingOffsets` does not name start at the earliest offset, and end at the latest. A task reads
ranges of offsets of about `bytesPerTask`. Aborted transactions are left out. A range whose offsets
are not all accounted for is an error, never a silent gap.
"""

import pyspark
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    DataSourceStreamReader,
)
from pyspark.sql.types import StructType

from ottla.lake.edges.batch import OttlaReader
from ottla.lake.edges.micro_batches import MicroBatchReader, UnlimitedReader
from ottla.lake.edges.sink_options import sink_options
from ottla.lake.edges.stream_writers import stream_writer
from ottla.lake.edges.writer import OttlaStreamWriter, batch_writer
from ottla.lake.model.schema import SOURCE_COLUMNS
from ottla.lake.source.source_options import LATEST, StreamOptions, parse_options, wrong

SPARK_VERSION = tuple(int(part) for part in pyspark.__version__.split(".")[:2])


class OttlaSource(DataSource):  # type: ignore[misc]  # pyspark's classes are untyped here.
    """Found by Spark in `pyspark_ottla`; see `stream.options` for its options."""

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
        return batch_writer(sink_options(self.options), schema, overwrite=overwrite)

    # Spark sets `overwrite` for the output mode complete: rows are appended, as in its Kafka sink.
    def streamWriter(self, schema: StructType, overwrite: bool) -> OttlaStreamWriter:  # noqa: ARG002, N802
        return stream_writer(sink_options(self.options), schema)


def stream_reader(options: StreamOptions) -> MicroBatchReader:
    """Return the stream reader for the installed version of Spark."""
    if options.end != LATEST:
        wrong("a stream has no end: leave out ending…, and stop it by trigger(availableNow=True)")
    if SPARK_VERSION >= (4, 2):
        from ottla.lake.edges.limited_batches import LimitedReader  # noqa: PLC0415  # As said.

        return LimitedReader(options)
    if options.has_limits:
        wrong(
            "limits of micro-batches (maxOffsetsPerTrigger, maxBytesPerTrigger, min…) need Spark "
            f"4.2, and this is {pyspark.__version__}: leave them out, or install pyspark 4.2"
        )
    return UnlimitedReader(options)
