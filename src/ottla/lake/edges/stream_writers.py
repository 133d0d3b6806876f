"""Chooses the stream writer for the installed version of Spark."""

import pyspark
from pyspark.sql.types import StructType

from ottla.lake.edges.sink_commit import OnStep
from ottla.lake.edges.sink_options import SinkOptions
from ottla.lake.edges.writer import OttlaStreamWriter


def stream_writer(
    options: SinkOptions, schema: StructType, on_step: OnStep = lambda _step: None
) -> OttlaStreamWriter:
    """Return the writer for the installed version of Spark."""
    if tuple(int(part) for part in pyspark.__version__.split(".")[:2]) < (4, 1):
        return OttlaStreamWriter(options, schema, on_step)
    from ottla.lake.edges.arrow_streams import OttlaArrowStreamWriter  # noqa: PLC0415  # As said.

    return OttlaArrowStreamWriter(options, schema, on_step)
