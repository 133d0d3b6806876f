"""When passes of compaction may have removed a tombstone that a table has not read."""

import pytest

from ottla.client.common.offset_account import CompactedBy
from ottla.lake.write.lost_deletions import may_have_removed

SINCE, RETENTION = 1_000, 500


def at(number: int, at_ms: int, since: int | None = None) -> CompactedBy:
    return CompactedBy(number, number if since is None else since, at_ms, 1)


@pytest.mark.parametrize(
    ("passes", "expected"),
    [
        ([], False),
        ([at(1, 1_100)], False),  # The first pass over a tombstone leaves it.
        ([at(1, 1_100), at(2, 1_599)], False),
        ([at(1, 1_100), at(2, 1_600)], True),
        ([at(1, 900), at(2, 1_600)], False),  # Before the table's last run it was not there.
        ([at(1, 900), at(2, 1_100), at(3, 1_600)], True),
        ([at(5, 1_400, since=2)], False),  # Counted together: at most 400 ms apart.
        ([at(5, 1_600, since=2)], True),
        ([at(0, 1_600)], True),  # Before the ledger was kept: nothing is known.
    ],
)
def test_two_passes_that_are_far_enough_apart(passes: list[CompactedBy], expected: bool) -> None:
    """Of the whole log, all of which was unread."""
    assert may_have_removed(passes, passes, SINCE, RETENTION) is expected


def test_a_later_pass_over_other_offsets_removes_none_of_these() -> None:
    """Only what is missing of the unread offsets counts."""
    whole = [at(1, 1_100), at(2, 1_600)]
    assert not may_have_removed(whole, whole[:1], SINCE, RETENTION)
    assert may_have_removed(whole, whole[1:], SINCE, RETENTION)
