"""Kills around the sink: `python -m tests.system.lake.by_hand_sink_kills --rounds 50`.

Each round is a query of its own, which writes into a topic of its own. Something is killed with -9:
the driver, the committing process or a task's worker at a step, the driver or the broker at a
random moment. The query is started again until it ends; then librdkafka reads what is committed.
"""

import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.errors import PySparkException
from rig.broker import ottla
from rig.java import java_home
from rig.kafka import kafka
from rig.nodes import Node
from rig.probe import free_port

from ottla.base.errors import OttlaError
from tests.system.lake.sink_query import (
    COMMIT_STEPS,
    driver_command,
    local_session,
    run_query,
    write_input,
)
from tests.system.lake.test_sink import require_exactly_once

EPOCHS, ROWS = 4, 200
STEPS = (*COMMIT_STEPS, "task began", "task done")
KILLS = ("driver at a step", "worker at a step", "driver", "broker")


class Round:
    """One query, one kill."""

    def __init__(
        self,
        number: int,
        broker: "Broker",
        spark: Any,
        folder: Path,
        chance: random.Random,
    ) -> None:
        self.node = broker.node
        self.bounce = broker.bounce
        self.spark = spark
        self.topic = f"round-{number}"
        self.folder = folder
        self.chance = chance
        self.kill = KILLS[number % len(KILLS)]
        self.runs = 0
        self.did = "nothing"

    def run(self) -> None:
        """Run until the query has ended. Raises AssertionError where it is not exactly once."""
        admin = AdminClient({"bootstrap.servers": self.node.bootstrap, "log_level": 0})
        admin.create_topics([NewTopic(self.topic, 3, 1)])[self.topic].result(90)
        write_input(self.folder / "in", EPOCHS, ROWS)
        if self.kill.endswith("at a step"):
            epoch, step = self.chance.randrange(EPOCHS), self.chance.choice(STEPS)
            what = self.kill.split()[0]
            order = f"{epoch} {what} 0 {step.format(epoch=epoch)}"
            (self.folder / "order").write_text(order)
            self.did = f"{what} at {step.format(epoch=epoch)!r} of epoch {epoch}"
        if self.kill.startswith("driver"):
            self._drive()
        while self.runs < 6:
            self.runs += 1
            try:
                run_query(self.spark, self.node.bootstrap, self.topic, self.folder, self._started)
                break
            except PySparkException:
                continue
        else:
            raise AssertionError("the query does not end")
        require_exactly_once(self.node, self.topic, EPOCHS * ROWS)

    def _drive(self) -> None:
        """A driver of its own, which does not come to its end."""
        with (self.folder / "driver.log").open("ab") as log:
            command = driver_command(self.node.bootstrap, self.topic, self.folder)
            driver = subprocess.Popen(command, stdout=log, stderr=log)
            if self.kill == "driver":
                self._wait_for_plan(driver.poll)
                self._pause()
                jvm = int((self.folder / "jvm").read_text())
                subprocess.run(["kill", "-9", str(jvm), str(driver.pid)], check=False)
            driver.wait(600)

    def _started(self, query: Any) -> None:
        if self.kill == "broker" and self.runs == 1:
            self._wait_for_plan(lambda: None if query.isActive else 0)
            self._pause()
            self.bounce()

    def _wait_for_plan(self, ended: Callable[[], int | None]) -> None:
        # The epochs begin once the checkpoint's log of offsets is there.
        while ended() is None and not list(self.folder.glob("checkpoint/offsets/*")):
            time.sleep(0.02)

    def _pause(self) -> None:
        delay_s = self.chance.uniform(0, 3)
        time.sleep(delay_s)
        self.did = f"{self.kill} {delay_s:.2f} s after the first epoch was planned"


class Broker:
    """A broker on one port, which comes back with its files."""

    def __init__(self, start: Callable[[], AbstractContextManager[Node]]) -> None:
        self._start = start
        self._kept: list[AbstractContextManager[Node]] = []
        self.node = self.start()

    def start(self) -> Node:
        """Bring it up."""
        self._kept.append(self._start())
        self.node = self._kept[-1].__enter__()
        return self.node

    def bounce(self) -> Node:
        """Kill -9, and up again."""
        self.node.process.kill()
        return self.start()


def main() -> int:
    """Run the rounds; print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kafka", action="store_true", help="Apache Kafka in place of Ottla")
    told = parser.parse_args()
    os.environ["JAVA_HOME"] = str(java_home())
    os.environ["PYSPARK_PYTHON"] = sys.executable
    home = Path(tempfile.mkdtemp(prefix="sink-kills-"))
    port = free_port()
    launch = partial(kafka, quick=True) if told.kafka else ottla
    broker = Broker(partial(launch, folder=home / "broker", port=port))
    spark = local_session()
    bad = 0
    try:
        for number in range(told.rounds):
            folder = home / f"round-{number}"
            folder.mkdir()
            one = Round(number, broker, spark, folder, random.Random(f"{told.seed}-{number}"))
            began = time.monotonic()
            outcome = "exactly once"
            try:
                one.run()
            except (AssertionError, OttlaError, KafkaException) as error:
                bad += 1
                outcome = f"BAD: {error!r} (see {folder})"
            seconds = time.monotonic() - began
            print(
                f"{number:3} {outcome}; killed: {one.did}; {one.runs} runs after, {seconds:.0f} s",
                flush=True,
            )
            if outcome == "exactly once":
                shutil.rmtree(folder)
    finally:
        spark.stop()
        broker.node.process.terminate()
    print(f"{told.rounds - bad} of {told.rounds} rounds exactly once")
    if not bad:
        shutil.rmtree(home)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
