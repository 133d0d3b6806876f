"""What is remembered of the rebalances of a group of the consumer protocol."""

from tests.unit.group.consumer_driver import Cluster, Member, World, settle


def told(cluster):
    return [(cause.kind.value, cause.setting) for _, cause in cluster.flight.causes]


def pair(cluster):
    """Two members that have three partitions each."""
    a, b = Member(cluster, "a", ["t"]), Member(cluster, "b", ["t"])
    a.beat()
    b.beat()
    settle(a, b)
    assert (len(a.owned), len(b.owned)) == (3, 3)
    return a, b


def test_a_first_member_has_everything_at_once():
    """Its first heartbeat begins the rebalance and ends it."""
    cluster = Cluster(World(t=6))
    Member(cluster, "a", ["t"]).beat()
    flight = cluster.flight
    assert (flight.protocol, flight.epoch, flight.ending) == ("consumer", 2, "stable")
    assert (flight.duration_ms, flight.members, flight.partitions, flight.moved) == (0, 1, 6, 6)
    assert told(cluster) == [("joined", None)]
    assert flight.longest() == []


def test_who_keeps_partitions_is_not_stopped():
    """A second member waits until the first has given back; the first never stands still."""
    cluster = Cluster(World(t=6))
    a = Member(cluster, "a", ["t"])
    a.beat()
    b = Member(cluster, "b", ["t"])
    cluster.advance(1_000)
    b.beat()
    cluster.advance(300)
    a.beat()  # It is told to give three back,
    cluster.advance(50)
    a.beat()  # says that it has,
    cluster.advance(20)
    b.beat()  # and they are b's.
    flight = cluster.flight
    assert (flight.epoch, flight.ending, flight.duration_ms) == (3, "stable", 370)
    assert (flight.members, flight.partitions, flight.moved) == (2, 6, 3)
    assert flight.longest() == [("b", 370)]


def test_a_silent_member_is_named_with_the_setting_of_its_session():
    """And the others go on: the rebalance costs nobody a stop."""
    cluster = Cluster(World(t=6))
    _, b = pair(cluster)
    for _ in range(9):
        cluster.advance(5_000)
        b.beat()
    assert told(cluster) == [("late", "group.consumer.session.timeout.ms=45000")]
    assert cluster.flight.causes[0][1].identity.member_id == "a"
    settle(b)
    flight = cluster.flight
    assert (flight.ending, flight.moved, flight.partitions) == ("stable", 3, 6)
    assert flight.longest() == []


def test_a_member_that_does_not_give_back_in_time_is_late():
    """Its own max.poll.interval.ms decides."""
    cluster = Cluster(World(t=6))
    a = Member(cluster, "a", ["t"])
    a.beat()
    b = Member(cluster, "b", ["t"])
    b.beat()
    for _ in range(12):
        # It reports, but keeps reading what it shall give back.
        cluster.send(a.request())
        b.beat()
        cluster.advance(5_000)
    assert told(cluster) == [("joined", None), ("late", "max.poll.interval.ms=60000")]
    settle(b)
    assert cluster.flight.ending == "stable"
    assert cluster.flight.longest() == [("b", 60_000)]


def test_a_change_of_topics_is_nobodys_doing():
    """More partitions raise the epoch with the next heartbeat."""
    cluster = Cluster(World(t=6))
    a, b = pair(cluster)
    cluster.world.grow("t", 8)
    settle(a, b)
    flight = cluster.flight
    assert told(cluster) == [("topics changed", None)]
    assert flight.causes[0][1].identity is None
    assert (flight.ending, flight.partitions, flight.moved) == ("stable", 8, 2)


def test_the_last_one_to_leave_ends_it():
    """An empty group needs no shares."""
    cluster = Cluster(World(t=6))
    a, b = pair(cluster)
    a.leave()
    b.leave()
    assert (cluster.flight.ending, cluster.flight.members) == ("empty", 0)
    assert told(cluster) == [("left", None), ("left", None)]


def test_a_static_member_that_leaves_for_a_while_disturbs_nobody():
    """Going and coming back are told as rebalances that were avoided."""
    cluster = Cluster(World(t=6))
    a = Member(cluster, "a", ["t"], instance_id="i")
    a.beat()
    a.leave(for_a_while=True)
    assert (told(cluster), cluster.flight.ending) == ([("left", "group.instance.id=i")], "avoided")
    again = Member(cluster, "again", ["t"], instance_id="i")
    again.beat()
    assert told(cluster) == [("returned", "group.instance.id=i")]
    assert cluster.flight.ending == "avoided"
    assert len(again.owned) == 6
