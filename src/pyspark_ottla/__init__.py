"""Where Spark finds the data source `ottla`: it looks into all packages named `pyspark_…`."""

from contextlib import suppress

with suppress(ImportError):  # Without the extra `spark` there is none, and Spark finds nothing.
    from ottla.lake.edges.datasource import OttlaSource as DefaultSource  # noqa: F401  # Spark's name.
