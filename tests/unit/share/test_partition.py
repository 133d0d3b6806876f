"""A share partition: who gets which records, and what becomes of them (KIP-932)."""

import pytest

from ottla.base.errors import ErrorCode, OttlaError
from ottla.share.deliveries import Acknowledged, Acquired, Dead, DeliveryLimits, Found, StateChanges
from ottla.share.partition import SharePartition
from ottla.share.states import DeliveryState, StateBatch

ACCEPT, RELEASE, REJECT, RENEW, GAP = [1], [2], [3], [4], [0]
TEN = [Found(0, 9)]


def acquire(
    partition: SharePartition, member: str, found: list[Found], most: int = 500, now_ms: int = 0
) -> list[Acquired]:
    offset = partition.next_offset()
    assert offset is not None
    return partition.acquire(member, offset, found, most, now_ms)


def code_of(
    partition: SharePartition, member: str, first: int, last: int, types: list[int]
) -> ErrorCode:
    with pytest.raises(OttlaError) as caught:
        partition.acknowledge(member, [Acknowledged(first, last, types)], 0)
    return caught.value.code


def test_records_go_to_one_member_at_a_time() -> None:
    """What one member has the next one does not get; it gets what comes after."""
    partition = SharePartition(DeliveryLimits(), 0)
    assert acquire(partition, "a", TEN) == [Acquired(0, 9, 1)]
    assert partition.next_offset() == 10
    assert acquire(partition, "b", [Found(10, 14)]) == [Acquired(10, 14, 1)]


def test_accepted_records_move_the_start() -> None:
    """The group begins behind what is accepted without a hole."""
    partition = SharePartition(DeliveryLimits(), 0)
    acquire(partition, "a", TEN)
    partition.acknowledge("a", [Acknowledged(5, 9, ACCEPT)], 0)
    assert partition.start_offset == 0
    assert partition.complete_count == 5
    partition.acknowledge("a", [Acknowledged(0, 4, ACCEPT)], 0)
    assert partition.start_offset == 10
    assert partition.complete_count == 0


def test_each_record_of_a_batch_is_acknowledged_for_itself() -> None:
    """One type for each offset: accepted and rejected are done with, released comes again."""
    partition = SharePartition(DeliveryLimits(), 0)
    acquire(partition, "a", [Found(0, 3)])
    partition.acknowledge("a", [Acknowledged(0, 3, [1, 2, 3, 1])], 0)
    assert partition.runs() == [
        StateBatch(1, 1, DeliveryState.AVAILABLE, 1),
        StateBatch(2, 2, DeliveryState.ARCHIVED, 1),
        StateBatch(3, 3, DeliveryState.ACKNOWLEDGED, 1),
    ]
    assert acquire(partition, "b", [Found(0, 3)]) == [Acquired(1, 1, 2)]


def test_a_lock_that_ends_gives_the_records_back() -> None:
    """After the lock's duration the records are for others, and the first member has them not."""
    partition = SharePartition(DeliveryLimits(lock_ms=1_000), 0)
    acquire(partition, "a", TEN, now_ms=5_000)
    assert partition.next_deadline_ms() == 6_000
    assert not partition.expire(5_999)
    assert partition.expire(6_000)
    assert acquire(partition, "b", TEN, now_ms=6_000) == [Acquired(0, 9, 2)]
    assert code_of(partition, "a", 0, 9, ACCEPT) is ErrorCode.INVALID_RECORD_STATE


def test_a_renewed_lock_holds_longer() -> None:
    """Renewing starts the lock anew and counts as no delivery (KIP-1222)."""
    partition = SharePartition(DeliveryLimits(lock_ms=1_000), 0)
    acquire(partition, "a", TEN)
    partition.acknowledge("a", [Acknowledged(0, 9, RENEW)], 900)
    assert not partition.expire(1_899)
    partition.acknowledge("a", [Acknowledged(0, 9, ACCEPT)], 1_899)
    assert partition.start_offset == 10


def test_locks_are_not_renewed_where_the_group_does_not_allow_it() -> None:
    """share.renew.acknowledge.enable=false refuses it."""
    partition = SharePartition(DeliveryLimits(renews=False), 0)
    acquire(partition, "a", TEN)
    assert code_of(partition, "a", 0, 9, RENEW) is ErrorCode.INVALID_RECORD_STATE


def test_a_record_is_given_out_no_more_often_than_the_limit() -> None:
    """Released for the last time it is archived, and told of as dead."""
    partition = SharePartition(DeliveryLimits(delivery_count=2), 0)
    for _ in range(2):
        acquire(partition, "a", [Found(0, 0)])
        partition.acknowledge("a", [Acknowledged(0, 0, RELEASE)], 0)
    assert partition.start_offset == 1
    assert list(partition.dead) == [Dead(0, 0, 2, rejected=False)]


def test_a_rejected_record_is_dead_at_once() -> None:
    """Reject needs no more deliveries."""
    partition = SharePartition(DeliveryLimits(), 0)
    acquire(partition, "a", [Found(0, 0)])
    partition.acknowledge("a", [Acknowledged(0, 0, REJECT)], 0)
    assert list(partition.dead) == [Dead(0, 0, 1, rejected=True)]
    assert partition.start_offset == 1


def test_a_member_that_goes_gives_back_what_it_has() -> None:
    """The others get it at once."""
    partition = SharePartition(DeliveryLimits(), 0)
    acquire(partition, "a", TEN)
    assert partition.release_all("a")
    assert not partition.release_all("a")
    assert acquire(partition, "b", TEN) == [Acquired(0, 9, 2)]


def test_an_acknowledgement_is_taken_as_a_whole_or_not_at_all() -> None:
    """Where one offset is not the member's, nothing of the request is done."""
    partition = SharePartition(DeliveryLimits(), 0)
    acquire(partition, "a", [Found(0, 4)])
    acquire(partition, "b", [Found(5, 9)])
    assert code_of(partition, "a", 0, 5, ACCEPT) is ErrorCode.INVALID_RECORD_STATE
    assert code_of(partition, "a", 4, 12, ACCEPT) is ErrorCode.INVALID_RECORD_STATE
    assert code_of(partition, "a", 0, 4, [1, 1]) is ErrorCode.INVALID_REQUEST
    assert code_of(partition, "a", 0, 4, [5]) is ErrorCode.INVALID_REQUEST
    assert partition.start_offset == 0
    assert partition.in_flight == 10


def test_no_more_records_are_under_way_than_allowed() -> None:
    """Above the limit nothing new is given, until something is done with."""
    partition = SharePartition(DeliveryLimits(records=10), 0)
    acquire(partition, "a", TEN)
    assert partition.next_offset() is None
    partition.acknowledge("a", [Acknowledged(3, 3, ACCEPT)], 0)
    assert partition.next_offset() == 10


def test_whole_batches_are_given_unless_the_member_wants_exactly_so_many() -> None:
    """Batches go beyond the count; with the record limit they are cut (KIP-1206)."""
    loose, strict = SharePartition(DeliveryLimits(), 0), SharePartition(DeliveryLimits(), 0)
    found = [Found(0, 9), Found(10, 19), Found(20, 29)]
    assert loose.acquire("a", 0, found, 12, 0) == [Acquired(0, 19, 1)]
    assert strict.acquire("a", 0, found, 12, 0, strict=True) == [Acquired(0, 11, 1)]
    assert strict.end_offset == 12
    assert strict.acquire("b", 12, found[1:], 12, 0, strict=True) == [Acquired(12, 23, 1)]


def test_batches_to_acknowledge_end_where_batches_of_the_log_end() -> None:
    """Runs are told apart after the size that the member thinks best."""
    partition = SharePartition(DeliveryLimits(), 0)
    found = [Found(0, 3), Found(4, 7), Found(8, 11)]
    assert partition.acquire("a", 0, found, 500, 0, batch_size=6) == [
        Acquired(0, 7, 1),
        Acquired(8, 11, 1),
    ]


def test_what_holds_nothing_for_members_is_archived() -> None:
    """Markers, aborted records, and what was compacted away are done with when they are met."""
    partition = SharePartition(DeliveryLimits(), 0)
    found = [Found(2, 3), Found(4, 4, readable=False), Found(7, 8)]
    assert acquire(partition, "a", found) == [Acquired(2, 3, 1), Acquired(7, 8, 1)]
    assert partition.start_offset == 2
    assert partition.complete_count == 3
    assert list(partition.dead) == []


def test_records_below_the_logs_start_are_gone() -> None:
    """A log that begins later takes acquired records with it; who has them may say so in vain."""
    partition = SharePartition(DeliveryLimits(), 0)
    acquire(partition, "a", TEN)
    partition.on_log_start(7)
    assert partition.start_offset == 7
    partition.acknowledge("a", [Acknowledged(0, 8, ACCEPT)], 0)
    assert partition.start_offset == 9
    partition.on_log_start(30)
    assert (partition.start_offset, partition.end_offset) == (30, 30)


def test_changes_tell_what_must_survive() -> None:
    """Acquiring alone is not written; what a member says is, once."""
    partition = SharePartition(DeliveryLimits(), 0)
    acquire(partition, "a", TEN)
    assert not partition.has_changes
    partition.acknowledge("a", [Acknowledged(0, 3, [1, 2, 1, 3])], 0)
    assert partition.has_changes
    assert partition.changes() == StateChanges(
        1,
        (
            StateBatch(1, 1, DeliveryState.AVAILABLE, 1),
            StateBatch(2, 2, DeliveryState.ACKNOWLEDGED, 1),
            StateBatch(3, 3, DeliveryState.ARCHIVED, 1),
        ),
        2,
    )
    assert not partition.has_changes


def test_a_record_acquired_again_is_written_as_available() -> None:
    """Whoever takes the partition over gives it out again, with the deliveries before."""
    partition = SharePartition(DeliveryLimits(), 0)
    acquire(partition, "a", [Found(0, 0)])
    partition.acknowledge("a", [Acknowledged(0, 0, RELEASE)], 0)
    acquire(partition, "b", [Found(0, 0)])
    assert partition.changes().batches == (StateBatch(0, 0, DeliveryState.AVAILABLE, 1),)


def test_a_partition_goes_on_from_what_was_written() -> None:
    """Offsets between those written were acquired when it was lost: they are given out."""
    written = [
        StateBatch(12, 14, DeliveryState.ACKNOWLEDGED, 1),
        StateBatch(17, 17, DeliveryState.AVAILABLE, 2),
    ]
    partition = SharePartition(DeliveryLimits(), 10, written)
    assert partition.next_offset() == 10
    assert acquire(partition, "a", [Found(10, 19)]) == [
        Acquired(10, 11, 1),
        Acquired(15, 16, 1),
        Acquired(17, 17, 3),
        Acquired(18, 19, 1),
    ]


def test_a_lowered_limit_counts_for_what_was_written_before() -> None:
    """A record that was given out often enough is not given out again."""
    written = [StateBatch(0, 0, DeliveryState.AVAILABLE, 3)]
    partition = SharePartition(DeliveryLimits(delivery_count=3), 0, written)
    assert partition.start_offset == 1
    assert list(partition.dead) == [Dead(0, 0, 3, rejected=False)]


def test_naming_a_record_twice_takes_the_first_word() -> None:
    """What is accepted and released in one request stays accepted."""
    partition = SharePartition(DeliveryLimits(), 0)
    acquire(partition, "a", [Found(0, 1)])
    both = [Acknowledged(0, 0, ACCEPT), Acknowledged(0, 1, RELEASE)]
    partition.acknowledge("a", both, 0)
    assert partition.runs() == [StateBatch(1, 1, DeliveryState.AVAILABLE, 1)]


def test_a_gap_is_archived() -> None:
    """Where a client finds no record there is none."""
    partition = SharePartition(DeliveryLimits(), 0)
    acquire(partition, "a", [Found(0, 1)])
    partition.acknowledge("a", [Acknowledged(0, 1, GAP)], 0)
    assert (partition.start_offset, list(partition.dead)) == (2, [])


def test_a_record_that_leaves_a_letter_is_done_with_only_after_that() -> None:
    """It is told of with the changes that say so, and holds the start until it is archived."""
    partition = SharePartition(DeliveryLimits(dead_letters=True), 0)
    acquire(partition, "a", [Found(0, 2)])
    partition.acknowledge("a", [Acknowledged(0, 1, REJECT), Acknowledged(2, 2, ACCEPT)], 0)
    letter = Dead(0, 1, 1, rejected=True)
    assert partition.changes() == StateChanges(
        0,
        (
            StateBatch(0, 1, DeliveryState.ARCHIVING, 1),
            StateBatch(2, 2, DeliveryState.ACKNOWLEDGED, 1),
        ),
        1,
        (letter,),
    )
    # Nobody is given it, and it is told of once.
    assert partition.next_offset() == 3
    assert (partition.start_offset, partition.in_flight, partition.has_changes) == (0, 2, False)
    partition.archive(0, 0)
    assert partition.changes() == StateChanges(1, (), 1)
    partition.archive(1, 1)
    assert (partition.start_offset, partition.in_flight) == (3, 0)
    assert partition.changes() == StateChanges(3, (), 0)


def test_a_record_given_out_too_often_leaves_a_letter() -> None:
    """Whether its lock ended, its member released it, or left."""
    partition = SharePartition(DeliveryLimits(lock_ms=100, delivery_count=2, dead_letters=True), 0)
    for give_back in (
        lambda: partition.expire(100),
        lambda: partition.release_all("a"),
    ):
        acquire(partition, "a", [Found(0, 0)])
        give_back()
    assert partition.changes().letters == (Dead(0, 0, 2, rejected=False),)


def test_who_takes_over_writes_the_letters_that_may_be_missing() -> None:
    """Why is told by the count; records that were to be given out go on."""
    written = [
        StateBatch(0, 0, DeliveryState.ARCHIVING, 5),
        StateBatch(1, 1, DeliveryState.AVAILABLE, 1),
        StateBatch(2, 3, DeliveryState.ARCHIVING, 2),
    ]
    partition = SharePartition(DeliveryLimits(delivery_count=5), 0, written)
    assert partition.archiving() == [
        Dead(0, 0, 5, rejected=False),
        Dead(2, 3, 2, rejected=True),
    ]
    assert partition.next_offset() == 1
    assert not partition.has_changes


def test_letters_under_way_count_as_records_under_way() -> None:
    """So a dead-letter topic that cannot be written to stops the giving out, not the memory."""
    partition = SharePartition(DeliveryLimits(records=3, dead_letters=True), 0)
    acquire(partition, "a", [Found(0, 2)])
    partition.acknowledge("a", [Acknowledged(0, 2, REJECT)], 0)
    assert partition.next_offset() is None
    partition.archive(0, 2)
    assert partition.next_offset() == 3


def test_what_the_log_has_lost_needs_no_archiving() -> None:
    """Retention may overtake a letter."""
    partition = SharePartition(DeliveryLimits(dead_letters=True), 0)
    acquire(partition, "a", [Found(0, 2)])
    partition.acknowledge("a", [Acknowledged(0, 2, REJECT)], 0)
    partition.on_log_start(2)
    partition.archive(0, 1)
    assert partition.start_offset == 2
    partition.archive(2, 2)
    assert partition.start_offset == 3


def deliver_and_release(
    partition: SharePartition, found: list[Found], times: int
) -> list[list[int]]:
    """Offsets of each of `times` deliveries to one member, which releases them all."""
    deliveries = []
    for _ in range(times):
        given = acquire(partition, "a", found)
        deliveries.append([o for each in given for o in range(each.first, each.last + 1)])
        partition.acknowledge("a", [Acknowledged(e.first, e.last, RELEASE) for e in given], 0)
    return deliveries


def test_records_delivered_often_come_in_halved_portions_and_at_last_alone() -> None:
    """As Kafka 4.2 delivers a batch of ten that a member always releases, limit 5."""
    partition = SharePartition(DeliveryLimits(), 0)
    ten, half = list(range(10)), [[5, 6, 7, 8, 9]]
    assert deliver_and_release(partition, TEN, 15) == [
        *[ten, ten, ten, [0, 1, 2, 3, 4]],
        *[[offset] for offset in range(5)],
        *half,
        *[[offset] for offset in range(5, 10)],
    ]
    assert partition.start_offset == 10


def test_a_poison_record_archives_itself_alone() -> None:
    """A member that fails at record 7 releases what it got with it; all others are accepted."""
    partition = SharePartition(DeliveryLimits(), 0)
    accepted: set[int] = set()
    while partition.start_offset < 10:
        for first, last, _ in acquire(partition, "a", TEN):
            poisoned = first <= 7 <= last
            kind = RELEASE if poisoned else ACCEPT
            partition.acknowledge("a", [Acknowledged(first, last, kind)], 0)
            accepted |= set() if poisoned else set(range(first, last + 1))
    assert accepted == set(range(10)) - {7}
    assert list(partition.dead) == [Dead(7, 7, 5, rejected=False)]


def test_portions_are_shares_of_the_batch_that_was_acquired_together() -> None:
    """With limit 10, 512 records of two batches of the log come as 256, 128, 64, 32, then one."""
    partition = SharePartition(DeliveryLimits(delivery_count=10), 0)
    found = [Found(0, 99), Found(100, 511)]
    sizes = [len(each) for each in deliver_and_release(partition, found, 10)]
    assert sizes == [512, 512, 512, 512, 512, 256, 128, 64, 32, 1]


def test_a_throttled_portion_comes_without_other_records() -> None:
    """Records before it, and new ones after it, come in deliveries of their own."""
    written = [
        StateBatch(0, 1, DeliveryState.AVAILABLE, 1),
        StateBatch(2, 9, DeliveryState.AVAILABLE, 3),
    ]
    partition = SharePartition(DeliveryLimits(), 0, written)
    found = [Found(0, 9), Found(10, 19)]
    assert acquire(partition, "a", found) == [Acquired(0, 1, 2)]
    assert acquire(partition, "b", found) == [Acquired(2, 5, 4)]
    assert acquire(partition, "c", found) == [Acquired(6, 9, 4)]
    assert acquire(partition, "d", [Found(10, 19)]) == [Acquired(10, 19, 1)]


def test_a_limit_of_two_throttles_nothing() -> None:
    """There is no delivery between the first and the last to be made smaller."""
    partition = SharePartition(DeliveryLimits(delivery_count=2), 0)
    assert [len(each) for each in deliver_and_release(partition, TEN, 2)] == [10, 10]
