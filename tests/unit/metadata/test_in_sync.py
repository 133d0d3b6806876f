"""Who is in sync, who is eligible and who led last, as members leave."""

from ottla.metadata.image import NO_LEADER, PartitionImage
from ottla.metadata.in_sync import without_members


def test_the_last_leader_is_remembered_when_the_last_member_leaves():
    """As in Kafka (KIP-966, `lastKnownElr`): of one replica, and of two that leave in turn."""
    one = without_members(PartitionImage(3, 0, (3,), (3,)), (3,), 1)
    assert (one.isr, one.elr, one.last_known_elr) == ((), (3,), (3,))
    two = without_members(PartitionImage(3, 0, (3, 2), (3, 2)), (3,), 2)
    assert (two.isr, two.elr, two.last_known_elr) == ((2,), (3,), ())
    led = PartitionImage(2, 1, (3, 2), two.isr, elr=two.elr)
    gone = without_members(led, (2,), 2)
    assert (gone.isr, gone.elr, gone.last_known_elr) == ((), (3, 2), (2,))


def test_those_who_lost_records_stay_known_behind_the_last_leader():
    """Recovery asks all of them; each is named once."""
    led = PartitionImage(2, 1, (1, 2, 3), (2,), last_known_elr=(3, 2))
    assert without_members(led, (2,), 1).last_known_elr == (2, 3)


def test_nothing_is_remembered_where_no_member_leaves_or_nobody_leads():
    """A partition that is offline already keeps what it knew."""
    offline = PartitionImage(NO_LEADER, 2, (1, 2), (1,), elr=(2,))
    assert without_members(offline, (1,), 1).last_known_elr == ()
    empty = PartitionImage(1, 2, (1, 2), (), elr=(2,))
    assert without_members(empty, (), 1).last_known_elr == ()
