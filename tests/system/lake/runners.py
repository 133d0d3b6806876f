"""Runners that do something before the tasks of a call, or kill the workers that run them."""

import os
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ottla.lake import Runner, Task, run_here
from ottla.lake.job.on_spark import run_on_spark


def after(deed: Callable[[], object]) -> Runner:
    """Tasks run in this process, each job once `deed` is done."""

    def run(tasks: Sequence[Any]) -> list[Any]:
        deed()
        return run_here(tasks)

    return run


@dataclass(frozen=True, slots=True)
class Murder:
    """A task that kills its worker once it has written its files, unless `marker` is there."""

    task: Task[Any]
    marker: Path

    @property
    def size_bytes(self) -> int:
        return self.task.size_bytes

    @property
    def offsets(self) -> int:
        return self.task.offsets

    def run(self) -> Any:
        """Run the task."""
        found = self.task.run()
        if not self.marker.exists():
            self.marker.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return found


def murderous(spark: Any, folder: Path, markers: list[Path]) -> Runner:
    """Tasks run on Spark; one worker of each job is killed. `markers` says which were."""

    def run(tasks: Sequence[Task[Any]]) -> list[Any]:
        markers.append(folder / f"killed-{type(tasks[0]).__name__}")
        return run_on_spark(spark, [Murder(task, markers[-1]) for task in tasks])

    return run
