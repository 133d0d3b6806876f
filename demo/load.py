"""The loader, a process of its own: loads what is new every few seconds until told the end.

Prints a line of JSON for each load and each step of it; dies at a chosen step if asked.
"""

import argparse
import os
import signal
import sys
import time

import ottla.lake
from demo.produce import say
from ottla.base.errors import OttlaError
from ottla.lake.session import session


def main() -> None:
    """Load until the process reads a line on its standard input, then once more."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--bootstrap", required=True)
    parser.add_argument("--topic", required=True)
    parser.add_argument("--to", required=True)
    parser.add_argument("--every", type=float, required=True, help="seconds between loads")
    parser.add_argument("--die-at", default="", help="the step after which to be killed")
    parser.add_argument("--die-after-loads", type=int, default=1)
    parser.add_argument("--stand-by", action="store_true", help="wait for a line before loading")
    told = parser.parse_args()
    spark = session()
    # The first job pays for the start of Spark and of its Python workers.
    spark.range(2).mapInArrow(lambda batches: batches, "id long").count()
    say(event="loader ready")
    if told.stand_by:
        sys.stdin.buffer.readline()
    loads = 0

    def on_step(step: str) -> None:
        say(event="step", step=step)
        if step == told.die_at and loads >= told.die_after_loads:
            os.kill(os.getpid(), signal.SIGKILL)

    last = False
    while True:
        last = last or _asked_to_end()
        try:
            done = ottla.lake.load(
                told.topic, told.to, bootstrap=told.bootstrap, spark_session=spark, on_step=on_step
            )
        except OttlaError as error:
            # The broker is being killed and restarted: nothing was committed, try again.
            say(event="load failed", why=str(error))
        else:
            manifest = done.manifest
            loads += done.rows > 0
            say(
                event="load",
                rows=done.rows,
                seconds=done.seconds,
                version=manifest.version if manifest else 0,
                total=manifest.total_rows if manifest else 0,
                removed=len(done.removed),
            )
            if last and done.rows == 0:
                spark.stop()
                return
        if not last:
            time.sleep(told.every)


def _asked_to_end() -> bool:
    os.set_blocking(sys.stdin.fileno(), False)
    return bool(sys.stdin.buffer.read())


if __name__ == "__main__":
    main()
