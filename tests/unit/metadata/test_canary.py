"""Which partitions of `__ottla_canary` each broker leads."""

from ottla.metadata.canary import missing, partition_of, replicas_for


def test_each_broker_is_first_in_a_partition_and_follows_in_others() -> None:
    """The next brokers in turn follow, at most two of them."""
    assert missing([1, 2, 3, 4], ()) == [(1, 2, 3), (2, 3, 4), (3, 4, 1), (4, 1, 2)]
    assert missing([7], ()) == [(7,)]


def test_brokers_that_come_later_get_partitions_with_the_factor_of_the_topic() -> None:
    """Kafka refuses to add partitions with another replication factor."""
    assert missing([1, 2, 3], [(1,)]) == [(2,), (3,)]
    assert missing([1, 2], [(1, 2), (2, 1)]) == []
    assert replicas_for(2, [1, 2, 3]) == (2, 3, 1)


def test_the_partition_of_a_broker_is_the_first_that_it_leads_by_preference() -> None:
    """None if there is none."""
    lists = [(1, 2), (2, 1), (2, 3)]
    assert partition_of(2, lists) == 1
    assert partition_of(3, lists) is None
