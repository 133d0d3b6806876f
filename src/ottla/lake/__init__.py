"""Loads from topics into a lake by PySpark, with a proof of each.

    import ottla.lake
    ottla.lake.load("flights", "/lake/flights", bootstrap="localhost:9092")
    ottla.lake.verify("/lake/flights", bootstrap="localhost:9092")
    ottla.lake.files("/lake/flights")      # what any Parquet reader may read
    ottla.lake.register(spark)             # then spark.read.format("ottla")

Needs the extra `ottla[lake]`, and for `load` and the data source Java 17 or newer.
"""

from typing import Any

from ottla.lake.certifying.document import certificate, certificate_text
from ottla.lake.header_names import header_name_bytes
from ottla.lake.loading import LoadLost, LoadResult, load, run_here
from ottla.lake.manifest import DataFile, Manifest
from ottla.lake.plan import Range
from ottla.lake.session import SparkSettings
from ottla.lake.table import Table
from ottla.lake.task import Task, TaskResult
from ottla.lake.verification import Verification, verify
from ottla.ledger.partition import PartitionLedger, Told, Unreadable

__all__ = [
    "DataFile",
    "LoadLost",
    "LoadResult",
    "Manifest",
    "PartitionLedger",
    "Range",
    "SparkSettings",
    "Task",
    "TaskResult",
    "Told",
    "Unreadable",
    "Verification",
    "certificate",
    "certificate_text",
    "files",
    "header_name_bytes",
    "load",
    "register",
    "run_here",
    "verify",
]


def files(target: str) -> list[str]:
    """Return the paths of all Parquet files that count in the table in folder `target`."""
    table = Table.open(target)
    return [str(table.folder / file.path) for load in table.history() for file in load.files]


def register(spark: Any) -> None:
    """Make the data source `ottla` known to the session `spark`, with filters pushed into it."""
    from ottla.lake.datasource import OttlaSource  # noqa: PLC0415  # Imports Spark.

    spark.dataSource.register(OttlaSource)
    # Spark 4.0 does not know the setting, and keeps it without a use.
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
