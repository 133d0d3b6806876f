"""Floods of events become few lines."""

from collections.abc import Mapping

import pytest

from ottla.security.audit.chain import canonical
from ottla.security.audit.repeats import Repeats


def denied(topic: str, principal: str = "User:bob") -> Mapping[str, object]:
    return {
        "event": "denied",
        "outcome": "denied",
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
    assert repeats.end(30_100) == []
    assert repeats.ends_ms is None


def test_the_count_has_the_details_of_the_last_one() -> None:
    """What was set last is what holds: a commit that rewinds a group is not hidden by another."""
    repeats = Repeats()
    commits = [{**denied("a"), "detail": {"offsets": {"0": offset}}} for offset in (9, 8, 1)]
    assert [repeats.admit(commit, 0) for commit in commits] == [True, False, False]
    assert repeats.end(10_000) == [{**commits[2], "more": 2, "seconds": 10}]


def test_a_flood_of_kinds_is_counted_by_outcome_and_api() -> None:
    """Fifty lines of kinds, and a count with name, address and outcome."""
    repeats = Repeats()
    lines = sum(repeats.admit(denied(f"topic-{n}"), n) for n in range(10_000))
    assert lines == 50
    (counted,) = repeats.end(10_000)
    assert counted == {
        "event": "denied",
        "outcome": "denied",
        "principal": "User:bob",
        "host": "10.0.0.7",
        "api": "PRODUCE",
        "more": 9_950,
        "seconds": 10,
    }


def test_events_without_names_are_counted_with_others_of_their_api() -> None:
    """One call for all of a request is as good as one for each."""
    each, together = Repeats(), Repeats()
    for n in range(60):
        each.admit(denied(f"topic-{n}"), 0)
    for n in range(50):
        together.admit(denied(f"topic-{n}"), 0)
    together.count(denied(""), 10, 0)
    assert each.end(10_000) == together.end(10_000) != []


def test_each_client_has_a_budget_of_its_own() -> None:
    """A flood of principals, or of addresses, is a line for each: none is counted with another."""
    repeats = Repeats()
    for name, host in ((f"User:{n}", f"10.0.{n >> 8}.{n & 255}") for n in range(10_000)):
        assert repeats.admit({**denied("a", name), "host": host}, 1)
    assert repeats.end_all(2) == []
    assert repeats.ends_ms is None


def test_the_addresses_of_an_ipv6_network_are_one_client() -> None:
    """A machine has all of its /64 for itself."""
    repeats = Repeats()
    hosts = [f"2001:db8::{n:x}" for n in range(1_000)]
    assert sum(repeats.admit({**denied("a"), "host": host}, 1) for host in hosts) == 50
    assert repeats.admit({**denied("a"), "host": "2001:db8:0:1::1"}, 1)


def test_guesses_of_a_users_password_are_counted_by_that_user() -> None:
    """A flood of logins of names that no user has does not hide them, from the same address."""
    repeats = Repeats()
    failed = {"event": "login_failed", "principal": "User:ANONYMOUS", "host": "10.0.0.7"}
    for number in range(10_000):
        repeats.admit({**failed, "cause": f"there is no user {number}"}, number)
    guess = {**failed, "user": "admin", "cause": "the proof is wrong"}
    assert [repeats.admit(guess, 1) for _ in range(43)] == [True] + [False] * 42
    named = [line for line in repeats.end_all(10_000) if line.get("user") == "admin"]
    assert named == [{**guess, "more": 42, "seconds": 10}]


def test_a_client_whose_lines_are_many_bytes_waits_with_its_next_change() -> None:
    """4 MiB at once and 32 KiB a second: 1 GiB of retention takes hours. Others do not wait."""
    repeats = Repeats()
    changed = {**denied("a"), "event": "changed", "outcome": "done"}
    assert repeats.wait_ms("User:bob", "10.0.0.7", 0) == 0
    for _ in range(65):
        repeats.wrote(changed, 64 << 10, 0)
    assert repeats.wait_ms("User:bob", "10.0.0.7", 0) == 2_000
    assert repeats.wait_ms("User:bob", "10.0.0.8", 0) == 0
    assert repeats.wait_ms("User:eve", "10.0.0.7", 0) == 0
    assert not repeats.admit(denied("b"), 0)
    assert repeats.wait_ms("User:bob", "10.0.0.7", 2_000) == 0
    assert repeats.admit(denied("b"), 3_000)


@pytest.mark.parametrize(("principal", "mib"), [("User:bob", 32), ("User:ANONYMOUS", 128)])
def test_many_addresses_give_a_principal_no_more_bytes(principal: str, mib: int) -> None:
    """In ten minutes, from ever new addresses or the same: and each act of another is a line."""
    repeats = Repeats()
    written = counted = 0
    events = 300_000

    def end(lines: list[Mapping[str, object]], now_ms: int) -> None:
        nonlocal written, counted
        for line in lines:
            size = len(canonical(line))
            repeats.wrote_count(line, size, now_ms)
            written += size
            counted += int(str(line["more"]))

    for number in range(events):
        now_ms = number * 600_000 // events
        host = f"10.{number % 2}.{number // 50 % 5_000 >> 8}.{number // 50 & 255}"
        event = {**denied(f"{number % 50}-{'t' * 900}", principal), "host": host}
        if repeats.ends_ms is not None and repeats.ends_ms <= now_ms:
            end(repeats.end(now_ms), now_ms)
        if repeats.admit(event, now_ms):
            size = len(canonical(event))
            repeats.wrote(event, size, now_ms)
            written += size
            counted += 1
        if repeats.is_full:
            end(repeats.end_all(now_ms), now_ms)
        if number % 10_000 == 0:
            assert repeats.admit(denied(f"{number}", "User:eve"), now_ms)
    end([each for each in repeats.end_all(600_000) if each["principal"] == principal], 600_000)
    assert counted == events
    assert written < mib << 20
    assert repeats.wait_ms("User:eve", "10.0.0.7", 600_000) == 0


def test_changes_from_many_addresses_wait_for_each_other() -> None:
    """8 MiB at once for all addresses of a principal."""
    repeats = Repeats()
    changed = {**denied("a"), "event": "changed", "outcome": "done"}
    for number in range(129):
        repeats.wrote({**changed, "host": f"10.0.0.{number}"}, 64 << 10, 0)
    assert repeats.wait_ms("User:bob", "10.0.1.1", 0) == 2_000
    assert repeats.wait_ms("User:eve", "10.0.0.7", 0) == 0
    repeats.end_all(0)
    assert repeats.wait_ms("User:bob", "10.0.1.1", 0) == 2_000


def test_failures_are_counted_by_their_errors() -> None:
    """Also beyond the kinds that one client may have."""
    repeats = Repeats()
    failed = {"event": "changed", "outcome": "failed"}
    for number in range(300):
        error = "INVALID_CONFIG" if number % 2 else "POLICY_VIOLATION"
        repeats.admit({**denied(f"topic-{number}"), **failed, "error": error}, number)
    assert {(each["error"], each["more"]) for each in repeats.end(10_000)} == {
        ("INVALID_CONFIG", 125),
        ("POLICY_VIOLATION", 125),
    }


def test_clients_without_number_take_no_memory() -> None:
    """The windows end before there are too many."""
    repeats = Repeats()
    for number in range(20_000):
        assert not repeats.is_full
        repeats.admit(denied("a", f"User:{number}"), 1)
    assert repeats.is_full
    repeats.end_all(1)
    assert not repeats.is_full


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
    now_ms += 600_000
    assert repeats.end(now_ms) == []
    repeats.admit(denied("a"), now_ms)
    assert repeats.ends_ms == now_ms + 10_000


def test_commits_of_each_topic_are_counted_by_themselves() -> None:
    """A rewind of one topic is not hidden by commits of another."""
    repeats = Repeats()
    topics = [{**denied("a"), "detail": {"topic": name}} for name in ("t", "u", "t")]
    assert [repeats.admit(commit, 0) for commit in topics] == [True, True, False]
