"""`make demo`: 336,776 real flights through three brokers into two tables, two murders and a proof.

An unmodified librdkafka producer sends them. A loader follows the topic into a Delta table of all
flights, and keeps a changelog table of planes up to date: the latest record of each. A leader is
killed with -9 in the middle and comes back later, the loader is killed once and another takes over.
At the end rows and hash of flights equal the source's, planes equal a replay of the source in plain
Python, both ledgers balance, and all replicas are equal.
"""

import argparse
import shutil
import sys
import time
from pathlib import Path
from typing import Any

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rig.clusters import Cluster
from rig.java import install, java_home
from rig.ottla_cluster import ottla_cluster

import ottla.lake
from demo import flights
from demo.failover import kill_leader, replicas_that_differ, settle
from demo.follow import WARM_UP
from demo.machine import described
from demo.processes import Events, Worker
from demo.report import print_summary, write_report
from demo.story import Story, Succession
from demo.tables import planes, rows_and_hash

TOPIC = "flights"
PARTITIONS = 6
REPLICAS = 3
_PATIENCE_S = 300
# What share of the flights is acknowledged when the leader dies, and when it comes back.
_DEATH_AT, _RETURN_AT = 0.4, 0.6

console = Console(width=max(Console().width, 110))


class Demo:
    """The actors: three brokers, a producer, a loader; and what is told of them."""

    def __init__(self, folder: Path, rate: int, every_s: float) -> None:
        self._folder = folder
        self._rate = rate
        self._every_s = every_s
        self._flights = folder / "lake" / "flights"
        self._planes = folder / "lake" / "planes"
        self._events = Events(folder / "events.jsonl")
        self._story = Story(TOPIC)
        # The loader dies right after a step.
        self._last_step_at = 0.0
        self._java = {"JAVA_HOME": str(java_home())}

    def run(self) -> bool:
        """Play the whole story; whether the proof holds."""
        began = time.monotonic()
        with ottla_cluster(folder=self._folder / "cluster") as cluster:
            self._bootstrap = cluster.bootstrap
            took_s = time.monotonic() - began
            console.print(f"three brokers on {self._bootstrap}, a cluster after {took_s:.1f} s")
            return self._play(cluster)

    def _play(self, cluster: Cluster) -> bool:
        self._create_topics()
        cluster.wait_until_in_sync(TOPIC)
        # The second one stands by: Spark's start would take it most of the story.
        self._loader = self._start_loader("--die-at", "manifest offered")
        self._stand_by = self._start_loader("--stand-by")
        workers = [self._loader, self._stand_by]
        try:
            self._until_ready(*workers)
            self._producer = self._start_producer()
            workers.append(self._producer)
            with Progress(
                TextColumn("{task.description:>22}"),
                BarColumn(bar_width=None),
                MofNCompleteColumn(),
                TimeElapsedColumn(),
                console=console,
            ) as progress:
                proof = self._follow(cluster, progress)
            return self._conclude(cluster, proof)
        finally:
            for worker in workers:
                worker.stop()

    def _follow(self, cluster: Cluster, progress: Progress) -> dict[str, Any]:
        """Observer until all is loaded, and disturb; what the producer told at its end."""
        delivered = progress.add_task("acknowledged", total=flights.TOTAL)
        loaded = progress.add_task("flights in the lake", total=flights.TOTAL)
        known = progress.add_task("planes in the lake", total=flights.PLANES)
        proof: dict[str, Any] | None = None
        deadline = time.monotonic() + _PATIENCE_S
        while time.monotonic() < deadline:
            event = self._events.next(0.1)
            self._replace_loader(finished=proof is not None)
            if event is None:
                if proof is not None and not self._loader.alive():
                    return proof
                self._require_alive(self._producer, proof is not None)
                self._require_alive(self._loader, proof is not None)
                continue
            match event["event"]:
                case "delivered":
                    self._story.delivered.append(event)
                    progress.update(delivered, completed=event["count"])
                    self._disturb(cluster, event["count"] / flights.TOTAL)
                case "commit":
                    self._story.committed(event)
                    progress.update(loaded, completed=event["total"])
                case "planes":
                    self._story.runs.append(event)
                    progress.update(known, completed=event["keys"])
                case "step":
                    self._last_step_at = event["at"]
                    if event["step"] == "following":
                        self._took_over(event["at"])
                case "proof":
                    proof = event
                    self._loader.tell("end")
        raise TimeoutError("the demo took too long; see the logs in out/demo")

    def _replace_loader(self, *, finished: bool) -> None:
        """Let the one that stands by take over when the first one is dead."""
        if self._loader is self._stand_by or self._loader.alive() or not self._loader.killed:
            return
        self._story.succession = Succession(self._last_step_at)
        self._story.mark("loader killed (-9) before its commit", self._story.succession.died_at)
        console.print("  [red]loader killed[/] with -9; another takes over")
        self._loader = self._stand_by
        self._loader.tell("load")
        if finished:
            self._loader.tell("end")

    def _took_over(self, at: float) -> None:
        """A loader has raised the writer epoch, and follows now."""
        heir = self._story.succession
        if heir is None:
            return
        heir.took_over_at = at
        waited = f"{at - heir.died_at:.1f} s"
        console.print(f"  [green]the successor has taken the table over[/] after {waited}")

    def _disturb(self, cluster: Cluster, share: float) -> None:
        """Kill the leader, and let it come back, when so much of all is acknowledged."""
        story = self._story.failover
        if story is None and share > _DEATH_AT:
            story = self._story.failover = kill_leader(cluster, TOPIC)
            moved = ", ".join(
                f"{partition}: {story.before[partition]} → {story.after[partition]}"
                for partition in story.moved
            )
            self._story.mark(f"broker {story.victim} killed (-9)", story.at)
            office = ", the controller too," if story.was_controller else ""
            console.print(
                f"  [red]broker {story.victim}[/]{office} [red]killed[/] with -9; new leaders "
                f"after {story.elected_s:.2f} s: partition {moved}"
            )
        elif story is not None and story.back_at is None and share > _RETURN_AT:
            cluster.members[story.victim].start()
            story.back_at = time.time()
            self._story.mark(f"broker {story.victim} is back", story.back_at)
            console.print(f"  [green]broker {story.victim} started again[/]")

    def _create_topics(self) -> None:
        admin = AdminClient({"bootstrap.servers": self._bootstrap})
        topics = [NewTopic(TOPIC, PARTITIONS, REPLICAS), NewTopic(WARM_UP, 1, REPLICAS)]
        for created in admin.create_topics(topics).values():
            created.result(10)
        producer = Producer({"bootstrap.servers": self._bootstrap})
        producer.produce(WARM_UP, b"value", b"key")
        producer.flush(10)

    def _start_loader(self, *more: str) -> Worker:
        arguments = ["--bootstrap", self._bootstrap, "--topic", TOPIC, "--to", str(self._flights)]
        arguments += ["--planes", str(self._planes), "--every", str(self._every_s), *more]
        return Worker(
            "demo.follow", arguments, self._events, self._folder / "loader.log", self._java
        )

    def _start_producer(self) -> Worker:
        arguments = ["--bootstrap", self._bootstrap, "--topic", TOPIC, "--rate", str(self._rate)]
        return Worker("demo.produce", arguments, self._events, self._folder / "producer.log", {})

    def _until_ready(self, *loaders: Worker) -> None:
        deadline = time.monotonic() + _PATIENCE_S
        ready = 0
        while ready < len(loaders):
            if time.monotonic() > deadline:
                raise TimeoutError("the loaders did not get ready; see the logs in out/demo")
            event = self._events.next(0.2)
            ready += event is not None and event["event"] == "loader ready"
            for loader in loaders:
                self._require_alive(loader, finished=False)

    def _require_alive(self, worker: Worker, finished: bool) -> None:
        if not finished and not worker.alive():
            raise RuntimeError(f"{worker.module} ended early; see {worker.log}")

    def _conclude(self, cluster: Cluster, proof: dict[str, Any]) -> bool:
        story = self._story
        assert story.failover is not None
        story.failover.measure(proof["waits"])
        story.steps = {int(partition): steps for partition, steps in proof["steps"].items()}
        settle(cluster, story.failover)
        both = (self._flights, self._planes)
        of_flights, of_planes = (
            ottla.lake.verify(str(table), bootstrap=self._bootstrap) for table in both
        )
        story.conclude(
            proof,
            (of_flights, of_planes),
            rows_and_hash(self._flights),
            planes(self._planes),
            source_rows=flights.TOTAL,
            differing=replicas_that_differ(cluster, TOPIC),
        )
        story.machine = described(f"python -m demo --rate {self._rate} --every {self._every_s:g}")
        path = self._folder / "report.html"
        write_report(story, path)
        print_summary(story, console)
        console.print(f"report: {path}")
        return story.proven


def main() -> int:
    """Run the demo; 0 where the proof holds."""
    parser = argparse.ArgumentParser(prog="demo")
    parser.add_argument("--rate", type=int, default=9_000, help="records a second")
    parser.add_argument("--every", type=float, default=1.5, help="seconds between commits")
    parser.add_argument("--out", type=Path, default=Path("out/demo"))
    told = parser.parse_args()
    shutil.rmtree(told.out, ignore_errors=True)
    told.out.mkdir(parents=True)
    install()
    return 0 if Demo(told.out.absolute(), told.rate, told.every).run() else 1


if __name__ == "__main__":
    sys.exit(main())
