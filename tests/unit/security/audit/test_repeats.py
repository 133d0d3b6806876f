"""Floods of events become few lines."""

from collections.abc import Mapping

from ottla.security.audit.repeats import Repeats


def denied(topic: str, principal: str = "User:bob") -> Mapping[str, object]:
    return {
        "event": "denied",
        "principal": principal,
        "host": "10.0.0.7",
        "api": "PRODUCE",
        "operation": "WRITE",
        "resource": f"Topic:{topic}",
    }


def test_the_first_of_a_kind_is_a_line_and_the_others_are_counted() -> None:
    """The line at the end of the window has their number."""
    repeats = Repeats()
    assert repeats.ends_ms is None
    assert [repeats.admit(denied("a"), 100 + n) for n in range(1533)] == [True] + [False] * 1532
    assert repeats.admit(denied("b"), 5_000)
    assert repeats.ends_ms == 10_100
    assert repeats.end(10_100) == [{**denied("a"), "more": 1532, "seconds": 10}]
    assert repeats.ends_ms is None


def test_the_count_has_the_details_of_the_last_one() -> None:
    """What was set last is what holds: a commit that rewinds a group is not hidden by another."""
    repeats = Repeats()
    commits = [{**denied("a"), "detail": {"offsets": {"0": offset}}} for offset in (9, 8, 1)]
    assert [repeats.admit(commit, 0) for commit in commits] == [True, False, False]
    assert repeats.end(10_000) == [{**commits[2], "more": 2, "seconds": 10}]


def test_a_flood_of_kinds_is_counted_by_principal_address_and_api() -> None:
    """Fifty lines of kinds, one of the group, and its count."""
    repeats = Repeats()
    lines = sum(repeats.admit(denied(f"topic-{n}"), n) for n in range(10_000))
    assert lines == 51
    (counted,) = repeats.end(10_000)
    assert counted == {
        "event": "denied",
        "principal": "User:bob",
        "host": "10.0.0.7",
        "api": "PRODUCE",
        "more": 9_949,
        "seconds": 10,
    }


def test_a_flood_of_principals_is_counted_whole() -> None:
    """No memory is kept for each of them."""
    repeats = Repeats()
    lines = sum(repeats.admit(denied("a", f"User:{n}"), n) for n in range(10_000))
    assert lines == 100
    assert repeats.end(10_000) == [{"event": "others", "more": 9_900, "seconds": 10}]


def test_a_new_principal_is_a_line_at_once_beside_a_flood() -> None:
    """A flood of one hides no other."""
    repeats = Repeats()
    for number in range(1_000):
        repeats.admit(denied(f"topic-{number}"), number)
    assert repeats.admit(denied("a", "User:mallory"), 2_000)


def test_windows_grow_while_events_repeat_and_shrink_afterwards() -> None:
    """A client that retries for a day writes some three hundred lines, not thousands."""
    repeats = Repeats()
    now_ms, windows = 0, []
    for _ in range(8):
        repeats.admit(denied("a"), now_ms)
        repeats.admit(denied("a"), now_ms)
        ends_ms = repeats.ends_ms
        assert ends_ms is not None
        windows.append((ends_ms - now_ms) // 1000)
        now_ms = ends_ms
        assert len(repeats.end(now_ms)) == 1
    assert windows == [10, 20, 40, 80, 160, 320, 600, 600]
    repeats.admit(denied("a"), now_ms)
    assert repeats.end(now_ms) == []
    repeats.admit(denied("a"), now_ms)
    assert repeats.ends_ms == now_ms + 10_000


def test_each_token_is_a_line_while_there_are_few() -> None:
    """Which one was made is what its line is for; a flood of them is bounded all the same."""
    repeats = Repeats()
    made = [{**denied("a"), "event": "changed", "detail": {"token": str(n)}} for n in range(1000)]
    assert sum(repeats.admit(event, 0) for event in made) == 51
    (rest,) = repeats.end(10_000)
    assert rest["more"] == 949
