"""The checker of histories calls each wrong by its name, and a right history right."""

import random
import sys
from typing import Any

import pytest
from verify.history.anomaly import HistoryRules
from verify.history.checker import check
from verify.history.operation import Operation, Step, from_lines
from verify.history.recorder import HistoryRecorder

STRICT = HistoryRules(recency=True, allowed=frozenset())


def send(
    process: str, begin: float, end: float, *records: tuple[Any, str], at: str = "t-0", **more: Any
) -> Operation:
    """Records as (offset or None, value)."""
    steps = [Step("send", at, offset, value) for offset, value in records]
    return Operation(process, "send", begin, end, more.pop("outcome", "ok"), steps, **more)


def poll(process: str, at_s: float, *records: tuple[int, str], at: str = "t-0") -> Operation:
    steps = [Step("poll", at, offset, value) for offset, value in records]
    return Operation(process, "poll", at_s, at_s + 0.1, "ok", steps)


def final(end: int, *records: tuple[int, str], at: str = "t-0") -> Operation:
    steps = [Step("poll", at, offset, value) for offset, value in records]
    return Operation("final", "final", 90, 91, "ok", steps, {at: end})


def txn(
    process: str, begin: float, end: float, *steps: tuple[str, Any, str], outcome: str = "ok"
) -> Operation:
    """Steps as (s or p, offset or None, value)."""
    names = {"s": "send", "p": "poll"}
    made = [Step(names[f], "t-0", offset, value) for f, offset, value in steps]  # type: ignore[arg-type]
    return Operation(process, "txn", begin, end, outcome, made)  # type: ignore[arg-type]


def asked(process: str, f: str, begin: float, end: float, offset: int, **more: Any) -> Operation:
    return Operation(process, f, begin, end, "ok", [], {"t-0": offset}, **more)


def jump(process: str, f: str, at_s: float) -> Operation:
    return Operation(process, f, at_s, at_s, "ok")


A, B, C = (0, "a"), (1, "b"), (2, "c")
SENT = [send("p", 0, 1, A), send("p", 2, 3, B), send("p", 4, 5, C)]

BAD: list[tuple[str, str, list[Operation]]] = [
    # Two values at one offset.
    ("inconsistent-offsets", "two acknowledgements", [
        send("p", 0, 1, (0, "a")), send("q", 0, 1, (0, "b"))]),
    ("inconsistent-offsets", "acknowledged one, read another", [
        send("p", 0, 1, (0, "a")), send("q", 0, 1, (None, "b"), outcome="info"),
        poll("c", 2, (0, "b"))]),
    ("inconsistent-offsets", "two readers differ", [
        send("p", 0, 9, (None, "a"), (None, "b"), outcome="info"),
        poll("c", 2, (0, "a")), poll("d", 2, (0, "b"))]),
    ("inconsistent-offsets", "one reader, before and after", [
        send("p", 0, 9, (None, "a"), (None, "b"), outcome="info"),
        poll("c", 2, (0, "a")), jump("c", "seek", 3), poll("c", 4, (0, "b"))]),
    ("inconsistent-offsets", "the last read differs", [
        send("p", 0, 9, (None, "a"), (None, "b"), outcome="info"),
        poll("c", 2, (0, "a")), final(1, (0, "b"))]),
    # One value twice.
    ("duplicate", "read at two offsets", [send("p", 0, 1, A), poll("c", 2, A, (1, "a"))]),
    ("duplicate", "acknowledged here, read there", [send("p", 0, 1, A), poll("c", 2, (5, "a"))]),
    ("duplicate", "of an unknown outcome", [
        send("p", 0, 9, (None, "a"), outcome="info"), final(2, A, (1, "a"))]),
    # Gone.
    ("lost-write", "a hole among what was read", [*SENT, poll("c", 6, A), poll("c", 7, C)]),
    ("lost-write", "a hole in the last read", [*SENT, final(3, A, C)]),
    ("lost-write", "the end is cut off", [*SENT, final(2, A, B)]),
    ("lost-write", "another took its place", [
        *SENT, send("q", 6, 9, (None, "x"), outcome="info"), final(3, A, B, (2, "x"))]),
    ("lost-write", "all is gone", [*SENT, final(0)]),
    ("unseen", "never read, nor anything behind it", [*SENT, poll("c", 6, A, B)]),
    # What was not written.
    ("G1a", "a refused write is read", [
        send("p", 0, 1, (None, "a"), outcome="fail"), poll("c", 2, A)]),
    ("G1a", "an aborted transaction is read", [
        txn("p", 0, 1, ("s", None, "a"), outcome="fail"), poll("c", 2, A)]),
    ("G1a", "by a transaction", [
        txn("p", 0, 1, ("s", None, "a"), outcome="fail"), txn("q", 2, 3, ("p", 0, "a"))]),
    ("unknown-value", "nobody sent it", [poll("c", 2, (0, "ghost"))]),
    ("unknown-value", "found at the end", [*SENT, final(4, A, B, C, (3, "ghost"))]),
    # In time.
    ("G0-realtime", "a later write stands before", [
        send("p", 0, 1, (5, "a")), send("q", 2, 3, (3, "b"))]),
    ("G0-realtime", "of an unknown outcome, read before", [
        send("p", 0, 1, (5, "a")), send("q", 2, 9, (None, "b"), outcome="info"),
        poll("c", 4, (3, "b"))]),
    ("stale-read", "the end does not reach an acknowledged write", [
        send("p", 0, 1, (5, "a")), asked("c", "end", 2, 3, 5)]),
    ("stale-read", "nothing is there at all", [
        send("p", 0, 1, A), asked("c", "end", 2, 3, 0)]),
    # A consumer's way.
    ("nonmonotonic-poll", "goes back", [*SENT, poll("c", 6, B, C), poll("c", 7, A)]),
    ("nonmonotonic-poll", "reads one again", [*SENT, poll("c", 6, A), poll("c", 7, A)]),
    ("poll-skip", "leaves one out", [*SENT, poll("d", 6, B), poll("c", 6, A), poll("c", 7, C)]),
    ("int-nonmonotonic-poll", "goes back within a poll", [*SENT, poll("c", 6, B, A)]),
    ("int-poll-skip", "leaves one out within a poll", [
        *SENT, poll("d", 6, B), poll("c", 7, A, C)]),
    ("int-poll-skip", "within a transaction", [
        *SENT, poll("d", 6, B), txn("c", 7, 8, ("p", 0, "a"), ("p", 2, "c"))]),
    # A producer's way.
    ("nonmonotonic-send", "a second write before the first", [
        send("p", 0, 5, (3, "a")), send("p", 1, 5, (2, "b"))]),
    ("int-nonmonotonic-send", "within one write", [send("p", 0, 5, (3, "a"), (2, "b"))]),
    ("int-nonmonotonic-send", "within a transaction", [
        txn("p", 0, 5, ("s", 3, "a"), ("s", 2, "b"))]),
    ("int-send-skip", "another between its records", [send("p", 0, 5, (3, "a"), (5, "b"))]),
    # Transactions.
    ("precommitted-read", "reads its own", [txn("p", 0, 1, ("s", None, "a"), ("p", 0, "a"))]),
    ("torn-transaction", "half is there", [
        txn("p", 0, 9, ("s", None, "a"), ("s", None, "b"), outcome="info"), final(1, A)]),
    ("lost-write", "half of a committed transaction", [
        txn("p", 0, 1, ("s", 0, "a"), ("s", 1, "b")), final(2, A)]),
    ("G1c", "two read each other", [
        txn("p", 0, 5, ("s", 0, "a"), ("p", 1, "b")),
        txn("q", 0, 5, ("s", 1, "b"), ("p", 0, "a"))]),
    ("G1c", "three in a circle", [
        txn("p", 0, 5, ("s", 0, "a"), ("p", 1, "b")),
        txn("q", 0, 5, ("s", 1, "b"), ("p", 2, "c")),
        txn("r", 0, 5, ("s", 2, "c"), ("p", 0, "a"))]),
    # Groups.
    ("lost-commit", "an older offset is told", [
        asked("c", "commit", 0, 1, 7, group="g"), asked("c", "committed", 2, 3, 5, group="g")]),
    ("lost-commit", "by another member's commit", [
        asked("c", "commit", 0, 1, 3, group="g"), asked("d", "commit", 1, 2, 9, group="g"),
        asked("c", "committed", 3, 4, 3, group="g")]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "operations"),
    [pytest.param(name, operations, id=f"{name}: {why}") for name, why, operations in BAD],
)
def test_bad_history_is_called_by_its_name(name: str, operations: list[Operation]) -> None:
    """Each history has one wrong, of that name, perhaps with others that follow from it."""
    assert name in check(operations, STRICT).names()


def test_there_are_enough_bad_histories() -> None:
    assert len(BAD) >= 30
    assert len({name for name, _, _ in BAD}) >= 15


GOOD: dict[str, list[Operation]] = {
    "in order": [*SENT, poll("c", 6, A, B, C), final(3, A, B, C)],
    "nothing happened": [],
    "an unknown outcome that was": [
        send("p", 0, 9, (None, "a"), outcome="info"), poll("c", 1, A), final(1, A)],
    "an unknown outcome that was not": [
        send("p", 0, 9, (None, "a"), outcome="info"), send("q", 0, 1, (0, "b")),
        final(1, (0, "b"))],
    "a hole that nobody's record fills": [
        send("p", 0, 1, A), send("p", 2, 3, (4, "b")), poll("c", 5, A, (4, "b")),
        final(5, A, (4, "b"))],
    "older than what the log still holds": [*SENT, poll("c", 6, A, B, C), final(3, C)],
    "at the same time in any order": [
        send("p", 0, 5, (5, "a")), send("q", 1, 5, (3, "b")), poll("c", 6, (3, "b"), (5, "a"))],
    "a consumer that seeks back": [
        *SENT, poll("c", 6, A, B), jump("c", "seek", 7), poll("c", 8, A, B, C)],
    "a subscriber that reads again": [
        *SENT, jump("c", "subscribe", 5), poll("c", 6, A, B), poll("c", 7, A, B, C)],
    "a retry without idempotence": [
        send("p", 0, 1, A, idempotent=False), final(2, A, (1, "a"))],
    "acknowledged by the leader only, and lost": [
        send("p", 0, 1, A, acks=1), send("q", 2, 3, (0, "b")), final(1, (0, "b"))],
    "transactions that read each other's past": [
        txn("p", 0, 1, ("s", 0, "a")), txn("q", 2, 3, ("p", 0, "a"), ("s", 1, "b")),
        txn("p", 4, 5, ("p", 1, "b"))],
    "a question asked before the answer to a write": [
        send("p", 0, 5, A), asked("c", "end", 1, 6, 0), poll("c", 6, A)],
    "commits that go on": [
        asked("c", "commit", 0, 1, 3, group="g"), asked("c", "commit", 2, 3, 5, group="g"),
        asked("d", "committed", 4, 5, 5, group="g"), asked("d", "committed", 0, 2, 3, group="h")],
}  # fmt: skip


@pytest.mark.parametrize("why", GOOD)
def test_good_history_is_valid(why: str) -> None:
    """What is allowed is no anomaly, strict rules or not."""
    assert check(GOOD[why], STRICT).anomalies == []


def test_readers_are_promised_as_much_of_what_was_sent_with_fewer_acknowledgements() -> None:
    """acks=1 promises its sender no offset; who has read a record was promised it for ever."""
    operations = [
        send("p", 0, 1, A, acks=1),
        send("q", 2, 3, (0, "b")),
        poll("c", 4, A),
        poll("d", 5, (0, "b")),
    ]
    assert check(operations, STRICT).names() == ["inconsistent-offsets"]


def test_rules_allow_by_name() -> None:
    verdict = check([*SENT, poll("c", 6, A, B)], HistoryRules())
    assert verdict.is_valid
    assert verdict.allowed["unseen"] == 1


def test_lines_are_paired_into_operations() -> None:
    """A history written line by line is read back; what never ended is of unknown outcome."""
    now_s = iter([0.0, 1.0, 2.0, 3.0, 4.0])
    recorder = HistoryRecorder(lambda: next(now_s))
    first = recorder.invoke("p", "send", steps=[Step("send", "t-0", None, "a")])
    recorder.invoke("p", "send", steps=[Step("send", "t-0", None, "b")], acks=1)
    recorder.ok(first, steps=[Step("send", "t-0", 4, "a")])
    other = recorder.invoke("c", "end")
    recorder.ok(other, offsets={"t-0": 5})

    one, two, three = from_lines(recorder.lines)
    assert (one.outcome, one.begin_s, one.end_s) == ("ok", 0.0, 2.0)
    assert one.steps == [Step("send", "t-0", 4, "a")]
    assert (two.outcome, two.acks, two.end_s) == ("info", 1, float("inf"))
    assert three.offsets == {"t-0": 5}
    assert recorder.unanswered("send") == [2]


def test_unavailability_is_the_longest_silence_between_acknowledgements() -> None:
    operations = [send("p", t, t + 1, (t, f"v{t}")) for t in (0, 1, 2, 9, 10)]
    assert check(operations).unavailable_s == 7


def test_long_histories_take_steps_in_proportion() -> None:
    """Ten times the operations take about ten times the steps."""
    generator = random.Random(1)

    def history(count: int) -> list[Operation]:
        made: list[Operation] = []
        for number in range(count):
            begin = number + generator.random()
            made.append(send(f"p{number % 7}", begin, begin + 0.5, (number, f"v{number}")))
            made.append(poll(f"c{number % 3}", begin + 0.6, (number, f"v{number}")))
        return made

    def calls(count: int) -> int:
        operations = history(count)
        made = 0

        def count_call(_frame: object, event: str, _argument: object) -> None:
            nonlocal made
            made += event in ("call", "c_call")

        sys.setprofile(count_call)
        try:
            check(operations)
        finally:
            sys.setprofile(None)
        return made

    assert calls(5_000) < 12 * calls(500)
