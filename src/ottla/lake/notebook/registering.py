"""Makes the data source `ottla` known to a Spark session."""

from typing import Any

# A server of Spark Connect writes each plan of its clients into its event log, with the options of
# sources and sinks as key and value; what matches this is left out. Java's notation.
_OPTIONS = r'key: "kafka\.(?:sasl|ssl)\.[^"]*+"\s*+value: "[^"\\]*+(?:\\.[^"\\]*+)*+"'
_REDACTION = "spark.sql.redaction.string.regex"


def register(spark: Any) -> None:
    """Make the data source `ottla` known to the session `spark`, with filters pushed into it.

    With Spark Connect the server leaves TLS and logins in options out of its event log, unless the
    session says itself what to leave out.
    """
    from ottla.lake.datasource import OttlaSource  # noqa: PLC0415  # Imports Spark.

    spark.dataSource.register(OttlaSource)
    # Spark 4.0 does not know the setting, and keeps it without a use.
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    is_connect = type(spark).__module__.startswith("pyspark.sql.connect")
    if is_connect and not spark.conf.get(_REDACTION, ""):
        spark.conf.set(_REDACTION, _OPTIONS)
