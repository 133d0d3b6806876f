"""Where the replicas of new partitions are placed."""

from ottla.metadata.topic_plan import place


def test_replicas_are_in_as_many_racks_as_there_are():
    """Leaders go round the racks, and each partition has one replica in each (P26)."""
    racks = {1: "a", 2: "a", 3: "b", 4: "b", 5: "c", 6: "c"}
    placed = place(sorted(racks), 3, range(6), 0, 0, racks)
    assert sorted(replicas[0] for replicas in placed) == [1, 2, 3, 4, 5, 6]
    assert [racks[replicas[0]] for replicas in placed] == ["a", "b", "c", "a", "b", "c"]
    for replicas in placed:
        assert {racks[broker] for broker in replicas} == {"a", "b", "c"}


def test_a_rack_takes_a_second_replica_only_when_all_have_one():
    """Four replicas in two racks: two and two."""
    racks = {1: "a", 2: "a", 3: "a", 4: "b", 5: "b"}
    for replicas in place(sorted(racks), 4, range(10), 3, 1, racks):
        assert sorted(racks[broker] for broker in replicas) == ["a", "a", "b", "b"]
        assert len(set(replicas)) == 4


def test_racks_count_only_where_every_broker_has_one():
    """Else the broker without would get too much or nothing."""
    some = {1: "a", 2: None, 3: "b"}
    assert place([1, 2, 3], 2, range(3), 0, 0, some) == place([1, 2, 3], 2, range(3), 0, 0)


def test_a_rack_whose_brokers_are_dead_keeps_its_replica():
    """As in Kafka: rather a copy outside the ISR than two copies in one rack."""
    racks = {1: "a", 2: "b", 3: "a"}
    assert place([1, 3], 2, range(2), 0, 0, racks, away=[2]) == ((1, 2), (3, 2))
    assert place([1, 3], 3, range(2), 0, 0, racks, away=[2]) == ((1, 2, 3), (3, 2, 1))
    assert place([1, 3], 1, range(2), 0, 0, racks, away=[2]) == ((1,), (3,))


def test_within_a_rack_live_brokers_come_first():
    """A dead broker whose rack is not known comes last of all."""
    racks = {1: "a", 2: "b", 3: "b", 4: "b", 5: None}
    placed = place([1, 2, 3], 4, range(1), 0, 0, racks, away=[4, 5])
    assert placed == ((1, 2, 3, 4),)
    assert place([1, 2, 3], 5, range(1), 0, 0, racks, away=[5, 4]) == ((1, 2, 3, 4, 5),)
