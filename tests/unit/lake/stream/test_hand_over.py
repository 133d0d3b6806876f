"""Micro-batches of one source until another one has started."""

import threading
from collections.abc import Callable, Mapping

import pytest

from ottla.lake.stream.follow.batches import Commit
from ottla.lake.stream.follow.ending import Stop
from ottla.lake.stream.follow.hand_over import HandOver


class Offsets:
    """Proposes one offset more each time, until it is stopped."""

    def __init__(self) -> None:
        self.threads: set[threading.Thread] = set()

    def run(self, positions: Mapping[int, int], commit: Commit, stop: Stop) -> None:
        end = positions[0]
        while not stop.is_set():
            end += 1
            commit({0: end})
            stop.wait(0.001)


class Starting:
    """Does `then` once `started` is set, or fails."""

    def __init__(self, then: Callable[[Commit], None]) -> None:
        self.started = threading.Event()
        self.runs = False
        self.over = False
        self._then = then

    def run(
        self, _positions: Mapping[int, int], commit: Commit, stop: Stop, is_up: threading.Event
    ) -> None:
        self.runs = True
        while not self.started.wait(0.001) and not stop.is_set():
            pass
        if not stop.is_set():
            is_up.set()
            self._then(commit)
        self.over = True


def test_the_first_source_commits_until_the_other_is_up() -> None:
    """From then on no end of the first one is committed."""
    ends: list[int] = []
    then = Starting(lambda commit: [commit({0: 1000 + number}) for number in range(3)][-1])

    def commit(at: Mapping[int, int]) -> None:
        ends.append(at[0])
        if len(ends) == 5:
            then.started.set()

    HandOver(Offsets(), then).run({0: 10}, commit, threading.Event())

    late = ends.index(1000)
    assert late >= 5
    assert ends[:late] == list(range(11, 11 + late))
    # One end may have been on its way.
    assert [end for end in ends[late:] if end >= 1000] == [1000, 1001, 1002]
    assert len(ends) <= late + 4


def test_commits_are_made_one_at_a_time() -> None:
    stop = threading.Event()
    at_once = threading.Lock()
    count = [0]

    def more(commit: Commit) -> None:
        while not stop.is_set():
            commit({0: 1000})

    then = Starting(more)

    def commit(_at: Mapping[int, int]) -> None:
        assert at_once.acquire(blocking=False)
        then.started.set()
        count[0] += 1
        if count[0] == 200:
            stop.set()
        at_once.release()

    HandOver(Offsets(), then).run({0: 0}, commit, stop)
    assert count == [200]


def test_a_source_that_fails_to_start_is_raised_and_ends_the_first() -> None:
    def fail(_commit: Commit) -> None:
        raise LookupError("no Java")

    then = Starting(fail)
    with pytest.raises(LookupError, match="no Java"):
        HandOver(Offsets(), then).run({0: 0}, lambda _: then.started.set(), threading.Event())


def test_the_other_source_starts_after_the_first_commit_and_ends_with_one_that_fails() -> None:
    then = Starting(lambda _commit: None)
    ran: list[bool] = []

    def commit(_at: Mapping[int, int]) -> None:
        ran.append(then.runs)
        if then.runs:
            raise LookupError("fenced")

    with pytest.raises(LookupError, match="fenced"):
        HandOver(Offsets(), then).run({0: 0}, commit, threading.Event())
    assert not ran[0]
    assert then.over
