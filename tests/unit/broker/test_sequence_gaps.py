"""Which gaps in a producer's sequence may close by themselves."""

import pytest

from ottla.base.errors import ErrorCode, OttlaError
from ottla.broker.partitions.sequence_gaps import SequenceGaps
from ottla.record.builder import BatchBuilder
from ottla.record.header import read_header
from ottla.storage.producers.state import AppendedBatch, ProducerEntry

AGAIN = ErrorCode.NOT_LEADER_OR_FOLLOWER
NOT_ENOUGH = ErrorCode.NOT_ENOUGH_REPLICAS


def header(sequence, *, producer_id=7, epoch=0):
    builder = BatchBuilder(producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence)
    builder.append(1_000, None, b"x")
    return read_header(builder.build())


def entry(last_sequence, last_offset):
    """A producer whose last batch stands at `last_offset`."""
    return ProducerEntry(7, 0, batches=[AppendedBatch(last_sequence, last_offset, 0, 1_000)])


def leading(epoch_start=100):
    gaps = SequenceGaps()
    gaps.begin_term(epoch_start)
    return gaps


def answer(gaps, known, batch):
    """The code a batch is sent back with; None where its gap is one."""
    try:
        gaps.check(known, batch)
    except OttlaError as error:
        return error.code
    return None


def test_first_batch_in_a_term_may_come_before_those_the_former_leader_had():
    """The producer's last batch is of an earlier term: it is sent back, each sequence once."""
    gaps, known = leading(epoch_start=100), entry(9, 99)
    assert answer(gaps, known, header(20)) is AGAIN
    assert answer(gaps, known, header(30)) is AGAIN
    assert answer(gaps, known, header(20)) is None
    assert answer(gaps, known, header(30)) is None


def test_producer_that_has_appended_in_this_term_has_lost_what_is_missing():
    """Its batches come to this leader in order."""
    assert answer(leading(epoch_start=100), entry(9, 100), header(20)) is None


def test_unknown_producer_that_begins_in_the_middle_comes_twice():
    """Its first batch may be on its way; if not, it may begin anywhere, as in Kafka."""
    gaps = leading()
    assert answer(gaps, None, header(20)) is AGAIN
    assert answer(gaps, None, header(20)) is None


def test_batch_behind_a_refused_one_is_refused_alike():
    """Whatever was refused with a passing error comes again, so the gap is none."""
    gaps, known = leading(epoch_start=100), entry(9, 150)
    gaps.on_refused(header(10), NOT_ENOUGH)
    assert answer(gaps, known, header(20)) is NOT_ENOUGH
    assert answer(gaps, known, header(30)) is NOT_ENOUGH


def test_batch_behind_one_that_is_refused_again_is_sent_back_again():
    """Each refusal of the earliest batch lets what follows it come too early once more."""
    gaps, known = leading(epoch_start=100), entry(9, 150)
    for _ in range(3):
        gaps.on_refused(header(10), NOT_ENOUGH)
        assert answer(gaps, known, header(20)) is NOT_ENOUGH
    assert answer(gaps, known, header(20)) is None


def test_client_that_gave_the_refused_batch_up_is_told_of_the_gap():
    """It comes again with the later batch only."""
    gaps, known = leading(epoch_start=100), entry(9, 150)
    gaps.on_refused(header(10), NOT_ENOUGH)
    assert answer(gaps, known, header(20)) is NOT_ENOUGH
    assert answer(gaps, known, header(20)) is None


def test_nothing_is_in_doubt_once_a_batch_is_appended():
    """What is refused later is another matter."""
    gaps = leading(epoch_start=100)
    gaps.on_refused(header(10), NOT_ENOUGH)
    assert gaps.is_any
    gaps.on_appended(7)
    assert not gaps.is_any
    assert answer(gaps, entry(10, 150), header(20)) is None


def test_refusal_of_another_epoch_or_a_later_batch_explains_no_gap():
    """Only an earlier batch of the same epoch can be what is missing."""
    gaps, known = leading(epoch_start=100), entry(9, 150)
    gaps.on_refused(header(10, epoch=1), NOT_ENOUGH)
    assert answer(gaps, known, header(20)) is None
    gaps.on_refused(header(30), NOT_ENOUGH)
    assert answer(gaps, known, header(20)) is None


def test_sequences_wrap_around():
    """The one after 2^31 - 1 is 0, and later."""
    gaps, known = leading(epoch_start=100), entry(2**31 - 12, 150)
    gaps.on_refused(header(2**31 - 11), NOT_ENOUGH)
    assert answer(gaps, known, header(5)) is NOT_ENOUGH


def test_new_term_knows_nothing_of_the_last():
    """Who was sent back by the former leader is sent back by the next one, too."""
    gaps = leading(epoch_start=100)
    assert answer(gaps, entry(9, 99), header(20)) is AGAIN
    gaps.begin_term(100)
    assert answer(gaps, entry(9, 99), header(20)) is AGAIN


@pytest.mark.parametrize("count", [5_000])
def test_memory_is_bounded(count):
    """A client that makes up producers makes the leader forget, not grow."""
    gaps = leading()
    for producer_id in range(count):
        gaps.on_refused(header(0, producer_id=producer_id), NOT_ENOUGH)
    assert len(gaps._doubts) == 1_000
    assert answer(gaps, None, header(5, producer_id=count - 1)) is NOT_ENOUGH
