"""`make demo`: 336,776 real flights through a broker into a lake, with two murders and a proof.

An unmodified librdkafka producer sends them while loads run every few seconds; the broker is
killed with -9 in the middle and started again, the loader is killed once. At the end the ledger
balances, and row count and hash equal the source's.
"""

import argparse
import shutil
import sys
import time
from pathlib import Path

import pyarrow.parquet as pq
from confluent_kafka.admin import AdminClient, NewTopic
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rig import broker as ottla_process
from rig.java import install, java_home
from rig.probe import free_port, wait_until_serving
from rig.process import Process

import ottla.lake
from demo import flights
from demo.processes import Events, Worker
from demo.report import Story, write_report
from ottla.lake.verification import Verification

TOPIC = "flights"
PARTITIONS = 6
_PATIENCE_S = 170

console = Console(width=max(Console().width, 110))


class Demo:
    """The actors: a broker, a producer, a loader; and what is told of them."""

    def __init__(self, folder: Path, rate: int, every_s: float) -> None:
        self._folder = folder
        self._rate = rate
        self._every_s = every_s
        self._port = free_port()
        self._bootstrap = f"127.0.0.1:{self._port}"
        self._lake = folder / "lake"
        self._events = Events()
        self._story = Story(TOPIC)
        self._java = {"JAVA_HOME": str(java_home())}

    def run(self) -> bool:
        """Play the whole story; whether the proof holds."""
        broker = self._start_broker()
        loader = self._start_loader(die_at="manifest written")
        producer: Worker | None = None
        try:
            self._create_topic()
            with Progress(
                TextColumn("{task.description:>22}"),
                BarColumn(bar_width=None),
                MofNCompleteColumn(),
                TimeElapsedColumn(),
                console=console,
            ) as progress:
                delivered = progress.add_task("acknowledged", total=flights.TOTAL)
                loaded = progress.add_task("in the lake", total=flights.TOTAL)
                self._until("loader ready", loader)
                producer = self._start_producer()
                proof = None
                asked_to_end = False
                deadline = time.monotonic() + _PATIENCE_S
                while loader.alive() or not asked_to_end:
                    if time.monotonic() > deadline:
                        raise TimeoutError("the demo took too long; see the logs in out/demo")
                    event = self._events.next(0.1)
                    if not loader.alive() and not asked_to_end and loader.killed:
                        self._story.mark("loader killed (-9) before its commit", time.time())
                        console.print("  [red]loader killed[/] with -9; a new one starts")
                        loader = self._start_loader()
                    if event is None:
                        self._require_alive(producer, proof is not None)
                        continue
                    match event["event"]:
                        case "delivered":
                            self._story.delivered.append((event["at"], event["count"]))
                            progress.update(delivered, completed=event["count"])
                            if self._story.gap_s is None and event["count"] > flights.TOTAL * 2 / 5:
                                broker = self._kill_and_restart(broker)
                        case "load":
                            self._story.loads.append(event)
                            progress.update(loaded, completed=event["total"])
                        case "proof":
                            proof = event
                            loader.ask_to_end()
                            asked_to_end = True
            assert proof is not None
            verification = ottla.lake.verify(str(self._lake), bootstrap=self._bootstrap)
            return self._conclude(proof, verification)
        finally:
            for worker in (producer, loader):
                if worker is not None:
                    worker.stop()
            broker.terminate()

    def _start_broker(self) -> Process:
        process = ottla_process.launch(self._folder / "broker", self._port)
        ready_s = wait_until_serving(process, self._port)
        console.print(f"broker on {self._bootstrap}, serving after {ready_s * 1000:.0f} ms")
        return process

    def _kill_and_restart(self, broker: Process) -> Process:
        broker.kill()
        killed = time.time()
        process = ottla_process.launch(self._folder / "broker", self._port)
        wait_until_serving(process, self._port)
        self._story.gap_s = time.time() - killed
        self._story.mark("broker killed (-9) and restarted", killed)
        console.print(
            f"  [red]broker killed[/] with -9; serving again after {self._story.gap_s:.2f} s"
        )
        return process

    def _create_topic(self) -> None:
        admin = AdminClient({"bootstrap.servers": self._bootstrap})
        created = admin.create_topics([NewTopic(TOPIC, num_partitions=PARTITIONS)])
        created[TOPIC].result(10)

    def _start_loader(self, die_at: str = "") -> Worker:
        arguments = ["--bootstrap", self._bootstrap, "--topic", TOPIC, "--to", str(self._lake)]
        arguments += ["--every", str(self._every_s), "--die-at", die_at]
        return Worker("demo.load", arguments, self._events, self._folder / "loader.log", self._java)

    def _start_producer(self) -> Worker:
        arguments = ["--bootstrap", self._bootstrap, "--topic", TOPIC, "--rate", str(self._rate)]
        return Worker("demo.produce", arguments, self._events, self._folder / "producer.log", {})

    def _until(self, name: str, worker: Worker) -> None:
        deadline = time.monotonic() + _PATIENCE_S
        while time.monotonic() < deadline:
            event = self._events.next(0.2)
            if event is not None and event["event"] == name:
                return
            self._require_alive(worker, finished=False)
        raise TimeoutError(f"{worker.module} did not get ready; see {worker.log}")

    def _require_alive(self, worker: Worker, finished: bool) -> None:
        if not finished and not worker.alive():
            raise RuntimeError(f"{worker.module} ended early; see {worker.log}")

    def _conclude(self, proof: dict[str, object], verification: Verification) -> bool:
        story = self._story
        story.conclude(proof, verification, rows=len_of_lake(self._lake), source_rows=flights.TOTAL)
        path = self._folder / "report.html"
        write_report(story, path)
        story.print_summary(console)
        console.print(f"report: {path}")
        return story.proven


def len_of_lake(lake: Path) -> int:
    """Rows in the files that count, by their own footers."""
    return sum(pq.read_metadata(path).num_rows for path in ottla.lake.files(str(lake)))


def main() -> int:
    """Run the demo; 0 where the proof holds."""
    parser = argparse.ArgumentParser(prog="demo")
    parser.add_argument("--rate", type=int, default=12_000, help="records a second")
    parser.add_argument("--every", type=float, default=1.5, help="seconds between loads")
    parser.add_argument("--out", type=Path, default=Path("out/demo"))
    told = parser.parse_args()
    shutil.rmtree(told.out, ignore_errors=True)
    told.out.mkdir(parents=True)
    install()
    return 0 if Demo(told.out.absolute(), told.rate, told.every).run() else 1


if __name__ == "__main__":
    sys.exit(main())
