"""Makes the data source `ottla` known to a Spark session."""

from typing import Any

# A server of Spark Connect writes each plan of its clients into its event log, with the options of
# sources and sinks as key and value; what matches this is left out. Java's notation.
_OPTIONS = r'key: "kafka\.(?:sasl|ssl)\.[^"]*+"\s*+value: "[^"\\]*+(?:\\.[^"\\]*+)*+"'
_REDACTION = "spark.sql.redaction.string.regex"


def register(spark: Any) -> None:
    """Have the session `spark` push filters into the data source `ottla`.

    Spark finds that by itself where its workers' Python has the package `pyspark_ottla`; elsewhere
    it is made known to the session. With Spark Connect the server leaves TLS and logins in options
    out of its event log, unless the session says itself what to leave out.
    """
    from pyspark.errors import PySparkException  # noqa: PLC0415  # As above.

    from ottla.lake.datasource import OttlaSource  # noqa: PLC0415  # Imports Spark.

    try:
        spark.dataSource.register(OttlaSource)
    except PySparkException as error:
        if "ALREADY_EXISTS" not in str(error.getCondition()):
            raise
    # Spark 4.0 does not know the setting, and keeps it without a use.
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    is_connect = type(spark).__module__.startswith("pyspark.sql.connect")
    if is_connect and not spark.conf.get(_REDACTION, ""):
        spark.conf.set(_REDACTION, _OPTIONS)
