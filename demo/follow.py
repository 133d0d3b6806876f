"""The loader, a process of its own: follows the topic into one table, and keeps another up to date.

    flights   each record, by `ottla.lake.follow`, into a Delta table
    planes    the latest record of each key, by `ottla.lake.changelog` after each commit of flights

Prints a line of JSON for each commit and each step of it; dies at a chosen step if asked.
"""

import argparse
import os
import signal
import threading
from tempfile import TemporaryDirectory
from typing import Any

import ottla.lake
from demo.produce import say
from ottla.base.errors import OttlaError
from ottla.lake.job.session import session

# A topic of a few records, to begin with.
WARM_UP = "warm-up"


class Loader:
    """Both tables, from one topic, on one Spark session."""

    def __init__(self, told: argparse.Namespace, spark: Any) -> None:
        self._told = told
        self._common = {"bootstrap": told.bootstrap, "spark_session": spark, "format": "delta"}
        self._commits = 0

    def run(self, stop: threading.Event) -> None:
        """Follow until `stop` is set, then load what is left."""
        told = self._told
        ottla.lake.follow(
            told.topic,
            told.to,
            every=int(told.every * 1000),
            watch=ottla.lake.Observer(
                stop=stop,
                on_commit=self._on_commit,
                on_error=lambda error: say(event="trouble", why=error.message),
                on_step=self._on_step,
            ),
            **self._common,
        )
        # `follow` and `load` take turns in one table.
        while (last := ottla.lake.load(told.topic, told.to, **self._common)).rows:
            assert last.manifest is not None
            self._say_commit(last.manifest, last.seconds)
        while self._keep_planes():
            pass

    def _on_step(self, step: str) -> None:
        say(event="step", step=step)
        if step == self._told.die_at and self._commits >= self._told.die_after_commits:
            os.kill(os.getpid(), signal.SIGKILL)

    def _on_commit(self, progress: ottla.lake.FollowProgress) -> None:
        self._say_commit(progress.manifest, progress.seconds)
        try:
            self._keep_planes()
        except OttlaError as error:
            # A broker is being killed and started: the next run applies these changes, too.
            say(event="trouble", why=error.message)

    def _say_commit(self, manifest: ottla.lake.Manifest, seconds: float) -> None:
        self._commits += manifest.rows > 0
        say(
            event="commit",
            rows=manifest.rows,
            total=manifest.total_rows,
            version=manifest.version,
            epoch=manifest.writer_epoch,
            seconds=seconds,
        )

    def _keep_planes(self) -> int:
        """Bring the table of planes up to date; how many changes it took."""
        done = ottla.lake.changelog(
            # Some flights have no tail number: the ledger counts them as keyless.
            self._told.topic,
            self._told.planes,
            on_null_key="skip",
            **self._common,
        )
        keys = done.manifest.total_rows if done.manifest else 0
        say(event="planes", changes=done.rows, keys=keys, seconds=done.seconds)
        return done.rows


def _warm_up(bootstrap: str, spark: Any) -> None:
    """Do all of it once elsewhere: the first queries pay for the start of Spark and its workers."""
    with TemporaryDirectory() as folder:
        common = {"bootstrap": bootstrap, "spark_session": spark, "format": "delta"}
        ottla.lake.follow(WARM_UP, f"{folder}/all", once=True, **common)
        ottla.lake.changelog(WARM_UP, f"{folder}/latest", **common)


def main() -> None:
    """Follow until the process reads a line on its standard input."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--bootstrap", required=True)
    parser.add_argument("--topic", required=True)
    parser.add_argument("--to", required=True, help="the table of all records")
    parser.add_argument("--planes", required=True, help="the table of the latest of each key")
    parser.add_argument("--every", type=float, required=True, help="seconds between commits")
    parser.add_argument("--die-at", default="", help="the step after which to be killed")
    parser.add_argument("--die-after-commits", type=int, default=2)
    parser.add_argument("--stand-by", action="store_true", help="wait for a line before all else")
    told = parser.parse_args()
    spark = session()
    _warm_up(told.bootstrap, spark)
    say(event="loader ready")
    stop = threading.Event()
    with open(0, "rb", buffering=0, closefd=False) as words:
        if told.stand_by:
            words.readline()

        def listen() -> None:
            words.readline()
            stop.set()

        threading.Thread(target=listen, daemon=True).start()
        Loader(told, spark).run(stop)
    spark.stop()


if __name__ == "__main__":
    main()
