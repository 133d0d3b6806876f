"""Where replicas are placed, and which moves make brokers alike."""

from ottla.base.ids import TopicPartition
from ottla.controller.balance import plan_balance
from ottla.metadata.image import PartitionImage
from ottla.metadata.placement import place

NO_RACKS = dict.fromkeys((1, 2, 3))


def partitions(*lists):
    return {
        TopicPartition("t", index): PartitionImage(replicas[0], 0, replicas, replicas)
        for index, replicas in enumerate(lists)
    }


def test_what_is_alike_already_is_left_alone():
    """No move without a reason."""
    assert plan_balance(partitions((1, 2), (2, 3), (3, 1)), NO_RACKS) == {}


def test_a_new_broker_gets_its_share_by_the_fewest_moves():
    """Six replicas on two brokers: two of them go to the third, and leadership is shared."""
    plan = plan_balance(partitions((1, 2), (1, 2), (1, 2)), NO_RACKS)
    after = [plan.get(TopicPartition("t", i), (1, 2)) for i in range(3)]
    counts = {b: sum(b in replicas for replicas in after) for b in (1, 2, 3)}
    assert counts == {1: 2, 2: 2, 3: 2}
    assert sorted(replicas[0] for replicas in after) == [1, 2, 3]


def test_balance_takes_no_partition_out_of_a_rack():
    """Two replicas in two racks stay in two racks."""
    racks = {1: "a", 2: "b", 3: "b"}
    before = partitions((1, 2), (1, 2), (1, 2), (1, 2))
    for replicas in plan_balance(before, racks).values():
        assert {racks[broker] for broker in replicas} == {"a", "b"}


def test_what_moves_and_what_has_dead_replicas_is_left_alone():
    """One thing at a time."""
    state = PartitionImage(1, 0, (1, 2), (1, 2), adding=(2,))
    assert plan_balance({TopicPartition("t", i): state for i in range(4)}, NO_RACKS) == {}
    dead = partitions((1, 9), (1, 9), (1, 9))
    assert plan_balance(dead, NO_RACKS) == {}


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
