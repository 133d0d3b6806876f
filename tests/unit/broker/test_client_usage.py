"""The table of the use of topics by clients, and the notes on slow and failed requests."""

import pytest

from ottla.base.errors import ErrorCode
from ottla.broker.usage import delays, table
from ottla.broker.usage.delays import DelayTable, FailureKey, Reason
from ottla.broker.usage.table import OTHERS, UsageEntry, UsageTable, UseKey


def key(client_id="c", topic="t", direction="produce", principal="User:a", library="lib 1"):
    return UseKey(topic, direction, client_id, principal, library)


def use(found: UsageEntry, size: int = 1) -> None:
    found.bytes += size


def test_a_sweep_notes_the_uses_since_the_last_one():
    """A counter that has not moved keeps the time of its last use."""
    uses = UsageTable(0)
    one, other = uses.entry(key("one"), 100), uses.entry(key("other"), 100)
    use(one, 5)
    uses.sweep(1_000)
    other.seen = True
    uses.sweep(2_000)
    assert [(each.key.client_id, each.bytes, each.last_ms) for each in uses] == [
        ("one", 5, 1_000),
        ("other", 0, 2_000),
    ]


def test_the_least_recently_used_entry_makes_room_and_less_is_known_then(monkeypatch):
    """What is known begins after the last use of the removed entry."""
    monkeypatch.setattr(table, "ENTRIES_MAX", 2)
    uses = UsageTable(0)
    for at_ms, name in enumerate(("a", "b"), start=1):
        use(uses.entry(key(topic=name), at_ms))
        uses.sweep(at_ms * 10)
    uses.entry(key(topic="c"), 30)
    assert {one.key.topic for one in uses} == {"b", "c"}
    assert uses.since_ms == 10


def test_a_connection_that_uses_a_removed_entry_again_brings_it_back(monkeypatch):
    """The hot path adds to the entry that it remembers, whether or not the table has it."""
    monkeypatch.setattr(table, "ENTRIES_MAX", 2)
    uses = UsageTable(0)
    remembered = uses.entry(key(topic="a"), 1)
    uses.entry(key(topic="b"), 2)
    uses.entry(key(topic="c"), 3)
    assert "a" not in {one.key.topic for one in uses}
    use(remembered, 7)
    uses.sweep(50)
    assert [(one.bytes, one.last_ms) for one in uses if one.key.topic == "a"] == [(7, 50)]
    assert len(uses) == 2


def test_client_ids_without_end_share_one_entry(monkeypatch):
    """So a client that changes its id does not push out the others."""
    monkeypatch.setattr(table, "CLIENT_IDS_MAX", 3)
    uses = UsageTable(0)
    for number in range(10):
        use(uses.entry(key(f"run-{number}"), number))
    names = [one.key.client_id for one in uses]
    assert names == ["run-0", "run-1", "run-2", OTHERS]
    assert [one.bytes for one in uses if one.key.client_id == OTHERS] == [7]
    uses.entry(key("run-9", principal="User:b"), 11)
    assert len(uses) == 5


def test_a_table_survives_its_file():
    """With a gap if the broker did not say that nothing was counted after the file was written."""
    uses = UsageTable(5)
    uses.watch({"t"}, 6)
    use(uses.entry(key(), 7), 9)
    uses.sweep(8)
    again = UsageTable(100)
    again.read(uses.lines(is_last=True), 100)
    (one,) = again
    assert (one.key, one.first_ms, one.last_ms, one.bytes) == (key(), 7, 8, 9)
    assert (again.since_ms, again.known_since("t"), again.gap_ms) == (5, 6, -1)
    crashed = UsageTable(100)
    crashed.read(uses.lines(is_last=False), 100)
    assert crashed.gap_ms == 100


@pytest.mark.parametrize("lines", [[], ["{}"], ["[1]"], ["nothing"], ['{"version": 9}']])
def test_a_damaged_file_is_refused(lines):
    """Then nothing from before is known."""
    with pytest.raises(ValueError):  # noqa: PT011  # The message is json's for some.
        UsageTable(0).read(lines, 1)


def test_a_deleted_topic_is_forgotten_and_a_new_one_is_watched_from_now_on():
    """So a topic that was created again does not inherit the old one's users."""
    uses = UsageTable(0)
    uses.watch({"t"}, 1)
    use(uses.entry(key(), 2))
    uses.watch({"u"}, 3)
    assert len(uses) == 0
    uses.watch({"t", "u"}, 4)
    assert (uses.known_since("t"), uses.known_since("u"), uses.known_since("x")) == (4, 3, -1)


REASON = Reason(0, delays.COMMIT_FOLLOWER, "3", "t", 0)


def test_the_slowest_requests_of_a_client_are_kept_and_all_are_counted(monkeypatch):
    """However many there are."""
    monkeypatch.setattr(delays, "_SLOWEST_MAX", 2)
    notes = DelayTable()
    for took_ms in (100, 900, 300, 200):
        notes.note_slow("c", took_ms, 10, REASON)
    found = notes.of("c")
    assert found is not None
    (period,) = found.periods
    assert sorted(one.took_ms for one in period.slowest) == [300, 900]
    count = period.reasons[REASON]
    assert (count.count, count.total_ms, count.longest_ms) == (4, 1_500, 900)


def test_old_periods_are_dropped():
    """Two are kept, so that at least the last ten minutes are known."""
    notes = DelayTable()
    for at_ms in (0, 600_000, 1_200_000):
        notes.note_slow("c", 100, at_ms, REASON)
    found = notes.of("c")
    assert found is not None
    assert [one.began_ms for one in found.periods] == [600_000, 1_200_000]


def test_a_failure_is_known_since_its_first_time_unless_it_paused():
    """A failure after a pause of ten minutes is a new one."""
    notes = DelayTable()
    failure = FailureKey(1, ErrorCode.OFFSET_OUT_OF_RANGE, "t", 0)
    for at_ms in (10, 500_000):
        notes.note_failure("c", at_ms, failure, "at 5")
    found = notes.of("c")
    assert found is not None
    count = found.failures[failure]
    assert (count.first_ms, count.last_ms, count.count, count.detail) == (10, 500_000, 2, "at 5")
    notes.note_failure("c", 1_200_000, failure, "at 6")
    assert found.failures[failure].first_ms == 1_200_000


def test_hostile_names_of_clients_and_topics_are_bounded(monkeypatch):
    """In number and in length."""
    monkeypatch.setattr(delays, "CLIENTS_MAX", 2)
    monkeypatch.setattr(delays, "_REASONS_MAX", 2)
    notes = DelayTable()
    for number in range(5):
        notes.note_slow(f"client-{number}", 100, 1, REASON)
    assert len(notes) == 2
    for number in range(5):
        notes.note_slow("x" * 10_000, 100, 1, REASON._replace(topic=f"t{number}"))
        failure = FailureKey(1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"t{number}", 0)
        notes.note_failure("x" * 10_000, 1, failure, "y" * 10_000)
    found = notes.of("x" * 200)
    assert found is not None
    assert [reason.topic for reason in found.periods[0].reasons] == ["t0", "t1", ""]
    assert len(found.failures) == 2
    assert all(len(count.detail) == 200 for count in found.failures.values())
