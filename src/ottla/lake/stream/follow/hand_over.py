"""Micro-batches while another source of them is still starting; then that one's.

Where the second source gets up slowly (Spark starts a process for the source of a query, and
workers), records would wait for it. Ends that both propose do no harm: a commit begins at the
table's positions.
"""

import threading
from collections.abc import Mapping
from typing import Protocol

from ottla.lake.stream.follow.batches import Commit, MicroBatches
from ottla.lake.stream.follow.ending import Stop


class StartingBatches(Protocol):
    """Sets `is_up` once it proposes ends, or knows that there are none for now."""

    def run(
        self, positions: Mapping[int, int], commit: Commit, stop: Stop, is_up: threading.Event
    ) -> None: ...


class Either:
    """Is set once one of two is."""

    def __init__(self, stop: Stop, event: threading.Event) -> None:
        self._stop = stop
        self._event = event

    def is_set(self) -> bool:
        return self._event.is_set() or self._stop.is_set()

    def wait(self, timeout: float) -> bool:
        return self._stop.wait(timeout)


class HandOver:
    """`first` until `then` is up, which starts after the first commit. One commit at a time.

    So the first commit has the machine to itself, and what it warms up serves the start.
    """

    def __init__(self, first: MicroBatches, then: StartingBatches) -> None:
        self._first = first
        self._then = then

    def run(self, positions: Mapping[int, int], commit: Commit, stop: Stop) -> None:
        is_up, is_over = threading.Event(), threading.Event()
        over = Either(stop, is_over)
        committing = threading.Lock()
        failures: list[BaseException] = []

        def commit_alone(ends: Mapping[int, int]) -> None:
            with committing:
                if not over.is_set():
                    commit(ends)

        def commit_first(ends: Mapping[int, int]) -> None:
            commit_alone(ends)
            if thread.ident is None:
                thread.start()

        def run_then() -> None:
            try:
                self._then.run(positions, commit_alone, over, is_up)
            except BaseException as error:  # noqa: BLE001  # Raised by the other thread.
                failures.append(error)
            finally:
                is_up.set()

        thread = threading.Thread(target=run_then, name="ottla-lake-batches")
        try:
            self._first.run(positions, commit_first, Either(over, is_up))
        except BaseException:
            is_over.set()
            raise
        finally:
            if thread.ident is not None:
                thread.join()
        if failures:
            raise failures[0]
