"""The processes that pass records on: killed on purpose, and replaced whenever one has ended."""

import shutil
import signal
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from chaos.transactions.task import CopyTask
from rig.jars import KAFKA, class_path
from rig.java import java
from rig.process import Process, start

JAVA = "java"
_TOOL = "org.apache.kafka.tools.TransactionalMessageCopier"
# A JVM, or Python's faulthandler, writes down what its threads are doing.
_LAST_WORDS_S = 2.0
_WORDS = 6000
_FLAGS = ("-Xms32m", "-Xmx192m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")


class Workers:
    """All copiers of a run, by their names."""

    def __init__(self, tasks: Mapping[str, CopyTask]) -> None:
        self._tasks = tasks
        self._processes: dict[str, Process] = {}
        self.killed = 0
        # How often one ended of itself: Kafka's tool does when it has passed on what there was.
        self.finished = 0
        self.gave_up = 0
        # How many were replaced because nothing came of them any more.
        self.stuck = 0

    def look(self) -> None:
        """Start those that do not run."""
        for name, task in self._tasks.items():
            process = self._processes.get(name)
            if process is None or not process.alive():
                if process is not None:
                    self._count(process.child.returncode)
                self._processes[name] = start(_command(task), log_of(task))

    def kill(self, name: str) -> None:
        """End one as a crash does. Another takes its place with the next `look`."""
        self.look()
        process = self._processes.pop(name)
        if process.alive():
            process.kill()
            self.killed += 1
        else:
            self._count(process.child.returncode)

    def replace(self) -> None:
        """End all, as whoever watches over them would: nothing comes of them any more.

        Their logs tell where they stood.
        """
        for process in self._processes.values():
            if process.alive():
                process.child.send_signal(signal.SIGQUIT)
        time.sleep(_LAST_WORDS_S)
        for process in self._processes.values():
            process.kill()
        self.stuck += len(self._processes)
        self._processes.clear()

    def stop(self) -> None:
        """Have all end after the transaction they are at."""
        for process in self._processes.values():
            if process.alive():
                process.child.terminate()
        for process in self._processes.values():
            process.terminate()

    def last_words(self) -> str:
        """The ends of all logs."""
        logs = [log_of(task) for task in self._tasks.values()]
        return "\n".join(
            f"{log.name}: {log.read_text(errors='replace')[-_WORDS:]}"
            for log in logs
            if log.exists()
        )

    def _count(self, code: int) -> None:
        if code == 0:
            self.finished += 1
        else:
            self.gave_up += 1


def log_of(task: CopyTask) -> Path:
    """What all processes of one name print."""
    return task.folder / f"{task.name}.log"


def _command(task: CopyTask) -> list[str | Path]:
    if task.kind != JAVA:
        return [sys.executable, "-m", "chaos.transactions.copier", *task.words()]
    command: list[str | Path] = [java(), *_FLAGS, "-cp", class_path(KAFKA), _TOOL]
    command += ["--broker-list", task.bootstrap, "--consumer-group", task.group]
    command += ["--input-topic", task.source, "--output-topic", task.target]
    # The last one is asked for, and of no use in a group.
    command += ["--group-mode", "--use-group-metadata", "--input-partition", "0"]
    command += ["--transactional-id", task.transactional_id]
    command += ["--transaction-size", str(task.size), "--transaction-timeout", "20000"]
    return [*command, "--enable-random-aborts"] if task.aborts else command


def available(kind: str) -> str | None:
    """Why there is no copier of that kind here, or None if there is."""
    return "Java is not here" if kind == JAVA and shutil.which("java") is None else None
