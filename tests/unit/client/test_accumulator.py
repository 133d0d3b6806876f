"""Records are collected into batches within bounded memory."""

import pytest

from ottla.base.errors import OttlaError
from ottla.client.producer.accumulator import Accumulator, as_bytes
from ottla.client.producer.queues import Headers, PartitionQueue, TopicQueues
from ottla.testing.clock import ManualClock

# Bytes of a batch's header, and of a record with a value of 100 bytes.
HEAD = 61
RECORD = 109


def make(batch_records: int = 3, buffer_batches: int = 2) -> tuple[Accumulator, PartitionQueue]:
    """Room for batches of `batch_records` records of 100 bytes."""
    size = HEAD + batch_records * RECORD
    return Accumulator(size, size * buffer_batches, ManualClock()), PartitionQueue("t", 0)


def fill(accumulator: Accumulator, queue: PartitionQueue, count: int) -> list[bool]:
    """Whether each of `count` records was taken."""
    return [accumulator.append(queue, None, b"x" * 100, 0, None) is not None for _ in range(count)]


def test_a_record_that_fills_the_batch_closes_it() -> None:
    """The queue is then ready, with news for whoever sends."""
    accumulator, queue = make()
    assert fill(accumulator, queue, 3) == [True, True, True]
    assert queue.open is None
    assert [batch.record_count for batch in queue.closed] == [3]
    assert list(accumulator.ready_queues) == [queue]
    assert accumulator.has_news


def test_a_record_that_does_not_fit_closes_the_batch_and_is_to_be_placed_anew() -> None:
    """None with news: the partition's turn is over, the record has not been taken."""
    accumulator, queue = make()
    fill(accumulator, queue, 2)
    accumulator.has_news = False
    assert accumulator.append(queue, None, b"x" * 150, 0, None) is None
    assert accumulator.has_news
    assert [batch.record_count for batch in queue.closed] == [2]


def test_full_memory_takes_nothing_until_a_batch_is_released() -> None:
    """None without news: the budget is spent (P7)."""
    accumulator, queue = make()
    assert fill(accumulator, queue, 6) == [True] * 6
    accumulator.has_news = False
    assert fill(accumulator, queue, 1) == [False]
    assert not accumulator.has_news
    assert accumulator.used_bytes == accumulator.buffer_bytes
    accumulator.release(queue.closed[0])
    assert fill(accumulator, queue, 1) == [True]


def test_a_batch_gives_back_what_it_did_not_need() -> None:
    """Reserved when opened, settled when closed."""
    accumulator, queue = make()
    fill(accumulator, queue, 1)
    assert accumulator.used_bytes == HEAD + 3 * RECORD
    accumulator.close(queue)
    assert accumulator.used_bytes == HEAD + RECORD


def test_a_large_batch_takes_memory_as_it_grows() -> None:
    """Partitions with few records do not take the memory of full batches from the others."""
    accumulator, queue = make(batch_records=1_000, buffer_batches=1)
    fill(accumulator, queue, 1)
    assert accumulator.used_bytes == 16_384
    fill(accumulator, queue, 200)
    assert accumulator.used_bytes == 2 * 16_384
    assert queue.open is not None


def test_a_batch_goes_when_memory_is_full() -> None:
    """It could have grown, but only what is sent gives memory back."""
    accumulator, queue = make(batch_records=100, buffer_batches=2)
    other = PartitionQueue("t", 1)
    fill(accumulator, other, 100)
    accumulator.buffer_bytes = accumulator.used_bytes + 16_384
    accumulator.batch_bytes = 50_000
    taken = fill(accumulator, queue, 200)
    assert taken.index(False) == (16_384 - HEAD) // 110 == 148
    assert [batch.record_count for batch in queue.closed] == [148]


def test_a_record_that_is_refused_leaves_nothing_behind() -> None:
    """The batch it would have begun is no batch."""
    accumulator, queue = make()
    with pytest.raises(OttlaError, match="timestamp -2"):
        accumulator.append(queue, None, b"x", -2, None)
    accumulator.close_all()
    assert (accumulator.used_bytes, len(accumulator.unfinished)) == (0, 0)
    assert not queue.closed


def test_a_record_larger_than_a_batch_goes_alone() -> None:
    """It is not refused here: what is too large, the topic's settings say."""
    accumulator, queue = make()
    assert accumulator.append(queue, None, b"x" * 500, 0, None) is not None
    assert [batch.record_count for batch in queue.closed] == [1]


def test_batches_close_when_they_have_waited_long_enough() -> None:
    """Those opened by the time given; the rest tells when the oldest was opened (P7)."""
    accumulator, queue = make()
    other = PartitionQueue("t", 1)
    fill(accumulator, queue, 1)
    assert isinstance(accumulator.clock, ManualClock)
    accumulator.clock.advance(10)
    fill(accumulator, other, 1)
    assert accumulator.close_older(5) == 10
    assert (queue.open, other.open is None) == (None, False)
    assert accumulator.close_older(10) is None
    assert other.open is None


def test_keys_are_placed_by_murmur2_and_anew_when_the_topic_grows() -> None:
    """As Java's client places them, for each number of partitions (P6)."""
    queues = TopicQueues("t", 7, 0)
    assert queues.place(b"foobar") is queues.partitions[0]
    assert queues.by_key == {b"foobar": queues.partitions[0]}
    queues.grow(10)
    assert queues.by_key == {}
    assert queues.place(b"abc") is queues.partitions[7]


def test_text_becomes_utf8_and_bytes_stay() -> None:
    """None stays None: a tombstone."""
    given = ["é", b"b", None, bytearray(b"c"), memoryview(b"d")]
    assert [as_bytes(value) for value in given] == [b"\xc3\xa9", b"b", None, b"c", b"d"]


@pytest.mark.parametrize(
    ("timestamp_ms", "headers"), [(2**63, None), (-7, None), (0, {"a": 5}), (0, {"\ud800": b"x"})]
)
def test_a_refused_first_record_leaves_no_batch(timestamp_ms: int, headers: Headers) -> None:
    """An empty open batch would never be sent, nor the records that come into it."""
    accumulator, queue = make()
    with pytest.raises((OttlaError, TypeError, ValueError)):
        accumulator.append(queue, None, b"x" * 100, timestamp_ms, headers)
    assert queue.open is None
    assert (accumulator.used_bytes, list(accumulator.open_queues)) == (0, [])
    assert fill(accumulator, queue, 3) == [True, True, True]


@pytest.mark.parametrize("headers", [{"a": 5}, {"good": b"x", "\ud800": b"x"}])
def test_a_refused_record_leaves_those_before_it_as_they_are(headers: Headers) -> None:
    """The batch goes on without it."""
    accumulator, queue = make()
    assert fill(accumulator, queue, 1) == [True]
    with pytest.raises((OttlaError, TypeError, ValueError)):
        accumulator.append(queue, None, b"y", 0, headers)
    assert fill(accumulator, queue, 1) == [True]
    accumulator.close(queue)
    (batch,) = queue.closed
    assert (batch.record_count, batch.size) == (2, HEAD + 2 * RECORD)


def test_text_that_is_not_utf8_is_refused_as_other_wrong_keys() -> None:
    """A lone surrogate has no bytes."""
    with pytest.raises(OttlaError, match="not UTF-8"):
        as_bytes("\ud800")
