"""Readers in processes of their own: `python schema_year_readers.py spark|duckdb delta|iceberg …`.

Each line of standard input is the folder of a table and, after a tab, a file: all rows go there, as
Arrow's stream, and a line says so. What can't be read ends the process. Spark gets its jars as a
third argument, DuckDB its extensions. Ottla is not imported: each engine has its own environment.
"""

import sys
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.ipc as ipc


def by_spark(kind: str, jars: str) -> Callable[[str], Any]:
    """A reader by Delta's and Iceberg's own libraries, from the table's folder."""
    from pyspark.sql import SparkSession

    settings = {
        "spark.jars": jars,
        "spark.ui.enabled": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    }
    if kind == "delta":
        settings |= {
            "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
            "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        }
    builder = SparkSession.builder.master("local[1]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    return lambda folder: spark.read.format(kind).load(folder).toArrow()


def by_duckdb(kind: str, extensions: str) -> Callable[[str], Any]:
    """A reader by DuckDB's extensions, from the table's folder."""
    import duckdb

    connection = duckdb.connect(config={"allow_unsigned_extensions": "true"})
    for path in extensions.split(","):
        connection.load_extension(path)
    scan = {"delta": "delta_scan", "iceberg": "iceberg_scan"}[kind]
    return lambda folder: connection.sql(f"select * from {scan}('{folder}')").to_arrow_table()


def main() -> None:
    engine, kind, files = sys.argv[1:]
    read = {"spark": by_spark, "duckdb": by_duckdb}[engine](kind, files)
    for line in sys.stdin:
        folder, path = line.rstrip("\n").split("\t")
        found: pa.Table = read(folder)
        with ipc.new_stream(path, found.schema) as stream:
            stream.write_table(found)
        sys.stdout.write("read\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
