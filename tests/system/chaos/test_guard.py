"""What a guard wrote down is judged: old rules are a violation where no fault explains them."""

import json

import pytest
from chaos.gaps import Moment
from chaos.guard_verdict import judge_guard

CHANGES = [
    {"what": "attempt", "begin_s": 10.0, "end_s": 10.0, "denies": False},
    {"what": "change", "begin_s": 10.0, "end_s": 11.0, "denies": False},
    {"what": "attempt", "begin_s": 20.0, "end_s": 20.0, "denies": True},
    {"what": "change", "begin_s": 20.0, "end_s": 21.0, "denies": True},
]


def answer(begin_s: float, *, is_denied: bool) -> dict[str, object]:
    times = {"begin_s": begin_s, "end_s": begin_s + 0.01}
    return {"what": "answer", "broker": 2, "is_denied": is_denied, **times}


def login(begin_s: float, how: str) -> dict[str, object]:
    times = {"begin_s": begin_s, "end_s": begin_s + 0.01, "acknowledged_s": 21.0}
    return {"what": "login", "broker": 2, "is_old": True, "answer": how, **times}


@pytest.mark.parametrize(
    ("note", "stale", "late", "by_fault"),
    [
        (answer(19.0, is_denied=False), 0, 0, 0),
        (answer(19.0, is_denied=True), 1, 0, 0),
        # While a change is on its way either answer is right.
        (answer(20.5, is_denied=False), 0, 0, 0),
        (answer(20.5, is_denied=True), 0, 0, 0),
        (answer(21.5, is_denied=False), 0, 1, 0),
        (answer(30.0, is_denied=True), 0, 0, 0),
        (answer(30.0, is_denied=False), 1, 0, 0),
        # A fault from 100 to 110 s keeps a broker from the store.
        (answer(101.0, is_denied=False), 0, 0, 1),
        (answer(114.0, is_denied=False), 0, 0, 1),
        (answer(116.0, is_denied=False), 1, 0, 0),
        (login(30.0, "refused"), 0, 0, 0),
        (login(30.0, "unknown"), 0, 0, 0),
        (login(30.0, "accepted"), 1, 0, 0),
    ],
)
def test_an_answer_goes_by_the_last_change_that_was_acknowledged(
    tmp_path, note, stale, late, by_fault
):
    """Within five seconds, and later only where a fault lasted meanwhile."""
    file = tmp_path / "guard.notes"
    file.write_text("".join(json.dumps(each) + "\n" for each in [*CHANGES, note]) + '{"what"')
    verdict = judge_guard(file, [Moment("store-cut", "", 100.0, 105.0, 110.0)])
    found = len(verdict.stale), verdict.late, verdict.late_by_fault
    assert found == (stale, late, by_fault)
    assert verdict.is_good == (not stale)
    assert (verdict.changes, verdict.answers + verdict.logins) == (2, 1)
