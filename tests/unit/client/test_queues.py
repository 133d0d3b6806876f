"""How far a partition's batches may run ahead of one that is undecided."""

from ottla.client.producer.queues import Batch, PartitionQueue


def batches(count: int) -> list[Batch]:
    return [Batch("t", 0, (serial, 0), 0, 0) for serial in range(count)]


def sent(queue: PartitionQueue, batch: Batch) -> None:
    queue.in_flight.append(batch)
    queue.window.append(batch)


def test_a_sixth_batch_waits_for_the_first_of_five() -> None:
    """A broker knows the last five again: the first, sent once more, would be a gap to it."""
    queue = PartitionQueue("t", 0)
    queue.is_known = True
    first, *others = batches(6)
    for batch in (first, *others[:4]):
        sent(queue, batch)
    # Those behind it are answered; it is not.
    for batch in others[:4]:
        queue.in_flight.remove(batch)
    queue.closed.append(others[4])
    assert queue.must_wait
    queue.in_flight.remove(first)
    assert not queue.must_wait


def test_the_first_batch_is_alone_until_it_is_answered() -> None:
    """A broker that does not know the producer takes any sequence, also the second one's."""
    queue = PartitionQueue("t", 0)
    first, second = batches(2)
    sent(queue, first)
    queue.closed.append(second)
    assert queue.must_wait
    queue.is_known = True
    assert not queue.must_wait


def test_what_was_sent_before_may_go_again() -> None:
    """It is among the five already."""
    queue = PartitionQueue("t", 0)
    queue.is_known = True
    first, second, *others = batches(5)
    for batch in (first, second, *others):
        sent(queue, batch)
    queue.in_flight.remove(second)
    queue.closed.append(second)
    assert not queue.must_wait


def test_without_numbers_nobody_waits() -> None:
    """There is nothing to know a batch by."""
    queue = PartitionQueue("t", 0)
    *flying, last = batches(9)
    queue.in_flight.extend(flying)
    queue.closed.append(last)
    assert not queue.must_wait
