"""The PySpark data source `ottla`: topics as a DataFrame, or as a stream.

    ottla.lake.register(spark)
    frame = spark.read.format("ottla").option("topic", "flights").load()
    frame = spark.readStream.format("ottla").option("topicPattern", "flights-.*").load()

`stream.options` has the table of options, docs/lake.md what they do. Partitions that
PARTITION:OFFSET,… does not name start at the earliest and end at the latest offset. A task reads
ranges of offsets of about `bytesPerTask`. Aborted transactions are left out. A range whose offsets
are not all accounted for is an error, never a silent gap.
"""

from pyspark.sql.datasource import DataSource, DataSourceReader
from pyspark.sql.types import StructType

from ottla.lake.schema import SPARK_TYPES
from ottla.lake.stream.batch import OttlaReader
from ottla.lake.stream.options import parse_options


class OttlaSource(DataSource):  # type: ignore[misc]  # pyspark's classes are untyped here.
    """Registered under the name `ottla`; see `stream.options` for its options."""

    @classmethod
    def name(cls) -> str:
        return "ottla"

    def schema(self) -> str:
        columns = parse_options(self.options).columns
        return ", ".join(f"{name} {SPARK_TYPES[name]}" for name in columns)

    def reader(self, schema: StructType) -> DataSourceReader:  # noqa: ARG002  # Spark's signature.
        return OttlaReader(parse_options(self.options))
