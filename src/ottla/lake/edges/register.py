"""Makes the data source `ottla` known to a Spark session."""

from typing import Any

# A Spark Connect server writes each plan of its clients to its event log, with the options of
# sources and sinks as keys and values. Options that match this pattern (in Java's notation) are
# left out.
_OPTIONS = r'key: "kafka\.(?:sasl|ssl)\.[^"]*+"\s*+value: "[^"\\]*+(?:\\.[^"\\]*+)*+"'
_REDACTION = "spark.sql.redaction.string.regex"


def register(spark: Any) -> None:
    """Register the data source `ottla` in the session `spark`, with filter pushdown.

    Spark finds the data source by itself if its workers' Python has the package `pyspark_ottla`;
    otherwise it is registered with the session. With Spark Connect the server leaves TLS and login
    options out of its event log, unless the session sets that pattern itself.
    """
    from pyspark.errors import PySparkException  # noqa: PLC0415  # As above.

    from ottla.lake.edges.datasource import OttlaSource  # noqa: PLC0415  # Imports Spark.

    try:
        spark.dataSource.register(OttlaSource)
    except PySparkException as error:
        if "ALREADY_EXISTS" not in str(error.getCondition()):
            raise
    # Spark 4.0 does not know the setting, and ignores it.
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    is_connect = type(spark).__module__.startswith("pyspark.sql.connect")
    if is_connect and not spark.conf.get(_REDACTION, ""):
        spark.conf.set(_REDACTION, _OPTIONS)
