"""Loads topics into a lake, in this process or by PySpark, and proves each load.

    import ottla.lake
    ottla.lake.load("flights", "/lake/flights", bootstrap="localhost:9092", master="here")
    ottla.lake.load("flights", "/lake/flights", bootstrap="localhost:9092")   # on Spark
    ottla.lake.follow("flights", "/lake/flights")   # the same, until it is stopped
    ottla.lake.verify("/lake/flights", bootstrap="localhost:9092")
    ottla.lake.files("/lake/flights")      # what any Parquet reader may read
    ottla.lake.topic("flights").to_pandas()      # or to_arrow, to_polars, to_spark, batches
    ottla.lake.register(spark)             # then spark.read.format("ottla")
    ottla.lake.publish("/lake/flights", "flights-again", bootstrap="localhost:9092")

Needs the extra `ottla[lake]`. Spark is in `ottla[spark]`, and needs Java 17 or newer.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ottla.lake.edges.public import *  # noqa: F403


def __getattr__(name: str) -> Any:
    # A process that imports one module of this package imports no other: Spark's workers, and
    # those that read one damaged file.
    return getattr(import_module("ottla.lake.edges.public"), name)


def __dir__() -> list[str]:
    names: list[str] = import_module("ottla.lake.edges.public").__all__
    return names
