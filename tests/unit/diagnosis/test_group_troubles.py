"""What is wrong with a group, from what brokers know of it and its members' clients."""

from ottla.base.errors import ErrorCode
from ottla.base.ids import TopicPartition
from ottla.client.admin.clients import ClientDelays, ClientFailure, ClientUse
from ottla.client.admin.groups import GroupDescription, GroupMember
from ottla.diagnosis.group_troubles import GroupSeverity, judged
from ottla.diagnosis.groups import GroupPosition
from ottla.diagnosis.retention import GroupLoss
from ottla.wire.messages.decisions import DescribedRebalance

PLACE = TopicPartition("t", 0)
MEMBER = GroupMember("m-1", None, "c", "/10.0.0.1", (PLACE,))
NOW = 10_000_000
NOTHING = ClientDelays((), (), (), {})


def group(state="Stable", members=(MEMBER,)):
    return GroupDescription("g", state, "consumer", "range", 1, tuple(members))


def position(committed=5, end=10, owner=MEMBER, loss=None):
    return GroupPosition(PLACE, committed, end, owner, loss)


def failure(code, last_ms=NOW):
    return ClientDelays(
        (), (), (ClientFailure(1, "c", "FETCH", code, PLACE, 1, last_ms, 3, ""),), {}
    )


def use(last_ms, direction="fetch"):
    return ClientUse(1, "t", direction, "c", "User:a", "", 1, last_ms, 1)


def told(description=None, positions=(), delays=NOTHING, uses=(), rebalances=()):
    return judged(description or group(), positions, (), delays, uses, rebalances, NOW)


def test_nothing_is_wrong_with_a_group_that_reads_and_commits():
    """Though it lags."""
    assert told(positions=[position()], uses=[use(NOW - 59_000)]) == ()


def test_the_worst_is_said_first():
    """Lost records, then members that are stuck, then what is only to be known."""
    found = told(
        positions=[
            position(committed=None),
            position(end=None),
            position(loss=GroupLoss(7, 2, None)),
        ]
    )
    assert [one.severity for one in found] == [
        GroupSeverity.LOSING,
        GroupSeverity.STUCK,
        GroupSeverity.NOTE,
    ]
    assert found[0].what == "2 records of t-0 were deleted before it had read them"
    assert "`ottla why leader t-0`" in found[1].remedy


def test_records_that_go_within_an_hour_are_named():
    """Later is not a trouble."""
    (found,) = told(positions=[position(loss=GroupLoss(0, 0, 3_600_000))])
    assert "is deleted in 1 hour, and it has 5 records to read" in found.what
    assert told(positions=[position(loss=GroupLoss(0, 0, 3_600_001))]) == ()


def test_a_group_without_members_is_a_trouble_if_it_has_something_to_read():
    """Otherwise it may have ended its work."""
    empty = group("Empty", ())
    (found,) = told(empty, [position(owner=None)])
    assert "5 records to read" in found.what
    assert told(empty, [position(committed=10, owner=None)]) == ()


def test_failures_of_members_have_a_remedy_by_their_error():
    """Those that clients handle by themselves, and old ones, are left out."""
    (found,) = told(delays=failure(ErrorCode.OFFSET_OUT_OF_RANGE))
    assert "`ottla group reset g --to-earliest --topic t:0`" in found.remedy
    (found,) = told(delays=failure(ErrorCode.TOPIC_AUTHORIZATION_FAILED))
    assert "`ottla acl explain`" in found.remedy
    assert told(delays=failure(ErrorCode.REBALANCE_IN_PROGRESS)) == ()
    assert told(delays=failure(ErrorCode.OFFSET_OUT_OF_RANGE, NOW - 600_001)) == ()


def test_a_member_that_fetches_no_more_is_named():
    """Since when, and what it owns; producing does not count."""
    (found,) = told(uses=[use(NOW - 60_001), use(NOW, "produce")])
    assert "client c at 10.0.0.1 owns partitions of t, and has not fetched since" in found.what


def test_frequent_rebalances_are_named():
    """Five in ten minutes, not those before."""
    lately = [DescribedRebalance(began_ms=NOW - one) for one in range(5)]
    (found,) = told(rebalances=lately)
    assert found.what == "it rebalanced 5 times in 10 minutes"
    assert told(rebalances=[*lately[1:], DescribedRebalance(began_ms=0)]) == ()
