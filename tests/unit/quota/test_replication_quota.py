"""What replicas may copy."""

from ottla.base.ids import BrokerId
from ottla.quota.replication import UNLIMITED, ReplicationQuota, is_throttled, throttled_here


def quota(bytes_per_s: int) -> ReplicationQuota:
    made = ReplicationQuota(window_num=11, window_ms=1000)
    made.set_rate(bytes_per_s)
    return made


def test_without_a_rate_everything_may_be_copied() -> None:
    """The default is no limit, and nothing is counted."""
    free = quota(UNLIMITED)
    free.record(10**12, 0)

    assert not free.is_limited
    assert free.available(0) == UNLIMITED
    assert free.wait_ms(0) == 0


def test_bytes_are_given_in_portions_of_a_tenth_of_a_second() -> None:
    """Who begins gets one at once; the next when it is whole."""
    slow = quota(10_000)

    assert slow.available(5000) == 1000
    slow.record(1000, 5000)
    assert slow.available(5099) == 0
    assert slow.wait_ms(5050) == 50
    assert slow.available(5100) == 1000


def test_a_batch_larger_than_a_portion_is_paid_for_afterwards() -> None:
    """5,000 bytes at 1,000 a second: five seconds until the next."""
    slow = quota(1000)
    slow.record(5000, 0)

    assert slow.wait_ms(0) == 5000
    assert slow.available(4999) == 0
    assert slow.available(5000) == 100


def test_a_copy_takes_as_long_as_its_bytes_are_worth() -> None:
    """10 MB in batches of 64 KiB at 1 MB/s: ten seconds, but for the last batch."""
    slow = quota(1_000_000)
    left, now_ms, batch = 10_000_000, 0, 65_536
    while left > 0:
        available = slow.available(now_ms)
        if available:
            size = min(max(available // batch * batch, batch), left)
            slow.record(size, now_ms)
            left -= size
        else:
            now_ms += slow.wait_ms(now_ms)

    assert 9_800 <= now_ms <= 10_100


def test_a_new_rate_holds_at_once() -> None:
    """What was copied under the old one is not held against it; the same one changes nothing."""
    slow = quota(1000)
    slow.record(5000, 0)
    slow.set_rate(1000)
    assert slow.available(0) == 0
    slow.set_rate(2000)
    assert slow.available(0) == 200
    slow.set_rate(UNLIMITED)
    assert slow.available(0) == UNLIMITED


def test_a_rate_of_nothing_copies_nothing() -> None:
    """Not even the first byte; there is always a time to look again."""
    stopped = quota(0)

    assert stopped.available(0) == 0
    assert stopped.available(1_000_000) == 0
    assert stopped.wait_ms(0) > 0


def test_replicas_are_named_by_partition_and_broker() -> None:
    """Only those on this broker are meant here; a star means all; nothing means none."""
    assert throttled_here(("0:1", "0:2", "3:1", "4:11"), BrokerId(1)) == frozenset({0, 3})
    assert throttled_here(("*",), BrokerId(1)) is None
    assert throttled_here((), BrokerId(1)) == frozenset()


def test_partitions_are_throttled_by_topic() -> None:
    """Named ones, all of a topic, and none of a topic that is not named."""
    throttled = {"some": frozenset({1}), "all": None}

    assert is_throttled(throttled, "some", 1)
    assert not is_throttled(throttled, "some", 2)
    assert is_throttled(throttled, "all", 7)
    assert not is_throttled(throttled, "other", 1)
