"""What is remembered of the rebalances of a classic group: causes, costs, settings."""

from ottla.group.coordinator.flights import Flights
from ottla.group.model.turn import Moment
from ottla.group.values.notes import GroupEvent, Happening
from ottla.wire.stored import (
    AssignmentTopicPartition,
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    SubscriptionTopicPartition,
    encode_versioned,
)
from tests.unit.group.driver import Driver, subscription


def share(*partitions):
    topics = [AssignmentTopicPartition(topic="t", partitions=list(partitions))]
    return encode_versioned(ConsumerProtocolAssignment(assigned_partitions=topics), 0)


def owning(*partitions):
    owned = [SubscriptionTopicPartition(topic="t", partitions=list(partitions))]
    message = ConsumerProtocolSubscription(topics=["t"], owned_partitions=owned)
    return (("cooperative", encode_versioned(message, 1)),)


OFFERED = (("range", subscription("t")),)


def told(driver):
    return [(cause.kind.value, cause.setting) for _, cause in driver.flight.causes]


def two_members(driver):
    """`a` leads and has partitions 0 and 1, `b` has 2; returns their ids."""
    ids = driver.stable_group("a", "b")
    a, b = ids["a"], ids["b"]
    driver.join("a asks", a, protocols=OFFERED)
    driver.join("b follows", b, protocols=OFFERED)
    generation = driver.group().generation
    driver.sync("b waits", b, generation)
    driver.sync("a shares", a, generation, {a: share(0, 1), b: share(2)})
    assert driver.group().state == "Stable"
    return a, b


def test_a_first_rebalance_is_ended_by_its_delay():
    """Members are waited for as long as group.initial.rebalance.delay.ms says, and no longer."""
    driver = Driver(initial_rebalance_delay_ms=3_000)
    member = driver.join("first").member_id
    driver.join("again", member)
    driver.advance(3_000)
    assert driver.flight.is_open
    assert driver.flight.duration_ms == -1
    driver.advance(40)
    driver.sync("sync", member, 1, {member: share(0, 1, 2)})
    flight = driver.flight
    assert (flight.protocol, flight.epoch, flight.ending) == ("classic", 1, "stable")
    assert (flight.formed_ms, flight.duration_ms) == (3_000, 3_040)
    assert flight.ended_by == "group.initial.rebalance.delay.ms=3000"
    assert (flight.members, flight.partitions, flight.moved) == (1, 3, 3)
    assert told(driver) == [("joined", None)]
    assert flight.longest() == [(member, 3_040)]


def test_a_rebalance_does_not_keep_the_topics_of_its_beginning():
    """A cluster of thousands of topics would be kept once per change of a topic."""
    flights, topics = Flights(), object()
    cause = GroupEvent("g", "classic", Happening.JOINED, None, "joined")
    flights.take([cause], Moment(5, 1_000, topics))
    (flight,) = flights.of("g")
    assert (flight.began.now_ms, flight.began.timestamp_ms) == (5, 1_000)
    assert flight.began.topics is not topics


def test_a_silent_member_is_named_with_its_session_timeout():
    """Who was late, after which silence, and what its end cost the others."""
    driver = Driver()
    a, b = two_members(driver)
    generation = driver.group().generation
    for _ in range(4):
        driver.advance(2_500)
        driver.heartbeat(a, generation)
    assert told(driver) == [("late", "session.timeout.ms=10000")]
    assert driver.flight.causes[0][1].identity.member_id == b
    driver.advance(700)
    driver.join("a again", a, protocols=OFFERED)
    driver.advance(5)
    driver.sync("a has all", a, generation + 1, {a: share(0, 1, 2)})
    flight = driver.flight
    # a's heartbeat came at the same moment as b's end, so a joined 700 ms after it.
    assert (flight.epoch, flight.duration_ms, flight.formed_ms) == (generation + 1, 705, 700)
    assert flight.ended_by is None
    # Only b's partition has another reader; a read nothing from its join until its share.
    assert (flight.partitions, flight.moved) == (3, 1)
    assert flight.longest() == [(a, 5)]
    assert (flight.without_members, flight.without_total_ms) == (1, 5)


def test_a_member_that_does_not_join_again_holds_all_up():
    """For as long as the longest max.poll.interval.ms, and the story says so."""
    driver = Driver()
    a, b = two_members(driver)
    driver.join("a asks again", a, protocols=OFFERED)
    generation = driver.group().generation
    for _ in range(12):
        driver.advance(5_000)
        driver.heartbeat(b, generation)
    assert told(driver) == [("changed", None), ("late", "max.poll.interval.ms=60000")]
    assert driver.flight.causes[1][1].identity.member_id == b
    assert (driver.flight.formed_ms, driver.flight.ended_by) == (
        *(60_000, "max.poll.interval.ms=60000"),
    )


def test_a_member_that_keeps_its_partitions_is_not_stopped():
    """A cooperative member reads on while the group shares out anew; a new one waits."""
    driver = Driver()
    a = driver.join("a", protocols=owning()).member_id
    driver.join("a joins", a, protocols=owning())
    driver.sync("a syncs", a, 1, {a: share(0, 1)})
    b = driver.join("b", protocols=owning()).member_id
    driver.join("b joins", b, protocols=owning())
    driver.advance(100)
    driver.join("a again", a, protocols=owning(0, 1))
    driver.sync("b syncs", b, 2)
    driver.advance(10)
    driver.sync("a shares", a, 2, {a: share(0), b: b""})
    assert driver.flight.longest() == []
    assert (driver.flight.partitions, driver.flight.moved) == (1, 0)
    # b was given nothing: it stays without into the rebalance that follows.
    driver.join("a once more", a, protocols=owning(0))
    driver.join("b once more", b, protocols=owning())
    driver.advance(5)
    driver.sync("b asks", b, 3)
    driver.sync("a gives", a, 3, {a: share(0), b: share(1)})
    assert (driver.flight.partitions, driver.flight.moved) == (2, 1)
    assert driver.flight.longest() == [(b, 5)]


def test_a_client_that_did_not_poll_is_told_apart_from_one_that_left():
    """The Java client says why it leaves; its rebalance timeout is its max.poll.interval.ms."""
    driver = Driver()
    a, b = two_members(driver)
    driver.leave((b, None), reason="consumer poll timeout has expired.")
    assert told(driver) == [("left", "max.poll.interval.ms=60000")]
    assert driver.flight.causes[0][1].words == "it left: consumer poll timeout has expired."
    driver.leave((a, None), reason="r" * 1_000)
    assert told(driver)[1] == ("left", None)
    assert len(driver.flight.causes[1][1].words) < 150
    assert (driver.flight.ending, driver.flight.members) == ("empty", 0)


def test_a_static_member_that_is_back_makes_no_rebalance():
    """It is told nevertheless, as one that was avoided."""
    driver = Driver()
    member = driver.join("one", instance="i").member_id
    driver.sync("sync", member, 1, {member: share(0)}, instance="i")
    driver.join("back", instance="i")
    assert driver.flight.ending == "avoided"
    assert told(driver) == [("returned", "group.instance.id=i")]
    assert driver.group().state == "Stable"


def test_a_member_id_that_nobody_comes_back_with_is_told():
    """A join phase waited for it."""
    driver = Driver()
    a, b = two_members(driver)
    driver.join("gone")
    driver.join("a asks again", a, protocols=OFFERED)
    driver.join("b too", b, protocols=OFFERED)
    driver.advance(10_000)
    assert told(driver)[1:] == [("late", "session.timeout.ms")]


def test_memory_is_bounded_in_rebalances_groups_and_causes():
    """The oldest are forgotten; of a rebalance with many causes the number remains."""
    flights = Flights(per_group=2, groups=3)
    for number in range(5):
        group_id = f"g{number}"
        for epoch in range(4):
            cause = GroupEvent(group_id, "classic", Happening.JOINED, None, f"{epoch}")
            flights.take([cause] * 20, Moment(epoch, epoch))
            flights.give_up(group_id, Moment(epoch + 1, epoch + 1))
    assert [len(flights.of(f"g{number}")) for number in range(5)] == [0, 0, 2, 2, 2]
    flight = flights.of("g4")[-1]
    assert (len(flight.causes), flight.causes_omitted) == (16, 4)
    assert (flight.ending, flight.duration_ms) == ("given up", 1)
