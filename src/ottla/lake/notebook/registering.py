"""Makes the data source `ottla` known to a Spark session."""

from typing import Any


def register(spark: Any) -> None:
    """Make the data source `ottla` known to the session `spark`, with filters pushed into it."""
    from ottla.lake.datasource import OttlaSource  # noqa: PLC0415  # Imports Spark.

    spark.dataSource.register(OttlaSource)
    # Spark 4.0 does not know the setting, and keeps it without a use.
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
