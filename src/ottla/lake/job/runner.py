"""Chooses the workers for the tasks of a call, by its options."""

from ottla.lake.job.options import SparkOptions
from ottla.lake.job.session import SparkSettings
from ottla.lake.job.watch import UNWATCHED, Observer
from ottla.lake.job.workers import Workers


def workers_of(
    options: SparkOptions,
    watch: Observer = UNWATCHED,
    consequence: str = "nothing was committed, since",
) -> Workers:
    """Return the workers. Raises OttlaError if `master` is invalid, or Spark is missing."""
    return Workers(
        SparkSettings(options["master"], options["name"], options["conf"] or {}),
        spark_session=options["spark_session"],
        runner=options["runner"],
        on_progress=watch.on_progress,
        lag_s=watch.lag_s,
        on_step=watch.on_step,
        consequence=consequence,
    )
