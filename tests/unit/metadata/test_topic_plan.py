"""What a new or a growing topic looks like, and what is refused (Kafka 4.3's codes)."""

from uuid import UUID

import pytest

from ottla.base.errors import ErrorCode, OttlaError
from ottla.metadata.image import BrokerImage, ClusterImage, PartitionImage, TopicImage
from ottla.metadata.topic_plan import RequestedTopic, TopicDefaults, plan_growth, plan_topic

ID = UUID(int=7)
DEFAULTS = TopicDefaults(partitions=4, replication_factor=1)


def cluster(*broker_ids, topics=()):
    image = ClusterImage("c", brokers={b: BrokerImage(b, {}) for b in broker_ids})
    for name in topics:
        image = image.with_topic(TopicImage(name, UUID(int=len(image.topics) + 1), ()))
    return image


def planned(new, image=None, start=0, registered=()):
    away = dict.fromkeys(registered)
    return plan_topic(new, ID, image or cluster(1), DEFAULTS, start, away)


def replicas_of(topic):
    return [partition.replicas for partition in topic.partitions]


def refusal(function, *arguments):
    with pytest.raises(OttlaError) as raised:
        function(*arguments)
    return raised.value.code


def test_a_topic_starts_with_all_replicas_in_sync_under_its_first():
    """Leader epoch 0; the preferred leader leads."""
    topic = planned(RequestedTopic("t", 1, 2), cluster(1, 2))
    assert topic.partitions == (PartitionImage(1, 0, (1, 2), (1, 2)),)
    assert (topic.name, topic.id) == ("t", ID)


def test_registered_brokers_that_are_dead_get_the_replicas_that_the_living_cannot():
    """Outside the ISR and never first; where enough others are alive they get none (Kafka 4.3)."""
    two = cluster(2, 3)
    topic = planned(RequestedTopic("t", 3, 3), two, registered=(1, 2, 3))
    assert replicas_of(topic) == [(2, 3, 1), (3, 2, 1), (2, 3, 1)]
    assert [p.isr for p in topic.partitions] == [(2, 3), (3, 2), (2, 3)]
    assert [p.leader for p in topic.partitions] == [2, 3, 2]
    assert replicas_of(planned(RequestedTopic("t", 1, 2), two, registered=(1, 4))) == [(2, 3)]
    spread = planned(RequestedTopic("t", 2, 3), two, registered=(1, 4))
    assert replicas_of(spread) == [(2, 3, 1), (3, 2, 4)]


def test_more_replicas_than_registered_brokers_are_refused():
    """However many of them are alive; and a cluster without a live broker makes no topic."""
    refused = ErrorCode.INVALID_REPLICATION_FACTOR
    assert refusal(planned, RequestedTopic("t", 1, 4), cluster(2, 3), 0, (1,)) is refused
    assert refusal(planned, RequestedTopic("t", 1, 1), cluster(), 0, (1,)) is refused


def test_a_replica_list_may_name_dead_brokers_beside_a_live_one():
    """The live ones are the ISR; only dead ones, or one that never registered, are refused."""
    two = cluster(2, 3)
    topic = planned(RequestedTopic("t", assignments={0: [1, 2], 1: [3, 1]}), two, registered=(1,))
    assert [(p.leader, p.replicas, p.isr) for p in topic.partitions] == [
        (2, (1, 2), (2,)),
        (3, (3, 1), (3,)),
    ]
    for replicas in ([1], [9, 2]):
        new = RequestedTopic("t", assignments={0: replicas})
        assert refusal(planned, new, two, 0, (1,)) is ErrorCode.INVALID_REPLICA_ASSIGNMENT


def test_a_topic_grows_onto_dead_brokers_likewise():
    """With its replication factor, by itself and by hand."""
    two = cluster(2, 3)
    topic = planned(RequestedTopic("t", 1, 3), two, registered=(1,))
    grown_topic = plan_growth(topic, 2, None, two, 0, {1: None})
    assert replicas_of(grown_topic)[1] == (3, 2, 1)
    named = plan_growth(topic, 2, [[1, 3, 2]], two, 0, {1: None})
    assert (named.partitions[1].leader, named.partitions[1].isr) == (3, (3, 2))
    assert refusal(plan_growth, topic, 2, [[1, 9, 2]], two, 0, {1: None}) is (
        ErrorCode.INVALID_REPLICA_ASSIGNMENT
    )


def test_minus_one_leaves_counts_to_the_settings():
    """KIP-464."""
    assert replicas_of(planned(RequestedTopic("t", -1, -1))) == [(1,)] * 4


def test_leaders_go_round_and_followers_are_spread():
    """Each broker leads as many, and its followers differ (P26)."""
    topic = planned(RequestedTopic("t", 6, 2), cluster(1, 2, 3))
    assert replicas_of(topic) == [(1, 2), (2, 3), (3, 1), (1, 3), (2, 1), (3, 2)]
    shifted = planned(RequestedTopic("t", 3, 1), cluster(1, 2, 3), start=2)
    assert replicas_of(shifted) == [(3,), (1,), (2,)]


def test_replicas_may_be_assigned_by_hand():
    """In any order of partitions."""
    new = RequestedTopic("t", assignments={1: [2, 1], 0: [1, 2]})
    assert replicas_of(planned(new, cluster(1, 2))) == [(1, 2), (2, 1)]


@pytest.mark.parametrize(
    ("new", "code"),
    [
        (RequestedTopic("t", 0, 1), ErrorCode.INVALID_PARTITIONS),
        (RequestedTopic("t", -2, 1), ErrorCode.INVALID_PARTITIONS),
        (RequestedTopic("t", 1, 0), ErrorCode.INVALID_REPLICATION_FACTOR),
        (RequestedTopic("t", 1, -2), ErrorCode.INVALID_REPLICATION_FACTOR),
        (RequestedTopic("t", 1, 2), ErrorCode.INVALID_REPLICATION_FACTOR),
        (RequestedTopic("t", 1, -1, {0: [1]}), ErrorCode.INVALID_REQUEST),
        (RequestedTopic("t", -1, 1, {0: [1]}), ErrorCode.INVALID_REQUEST),
        (RequestedTopic("t", assignments={1: [1]}), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (RequestedTopic("t", assignments={0: []}), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (RequestedTopic("t", assignments={0: [1, 1]}), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (RequestedTopic("t", assignments={0: [9]}), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    ],
)
def test_what_cannot_be_is_refused_with_kafkas_code(new, code):
    """On a cluster of one broker."""
    assert refusal(planned, new) is code


def test_a_number_typed_wrong_does_not_stop_the_cluster():
    """10,000 partitions a request, as in Kafka; the refusal costs nothing."""
    assert refusal(planned, RequestedTopic("t", 10_001, 1)) is ErrorCode.POLICY_VIOLATION
    assert refusal(planned, RequestedTopic("t", 2**31 - 1, 1)) is ErrorCode.POLICY_VIOLATION
    assert refusal(grown, 2**31 - 1) is ErrorCode.POLICY_VIOLATION
    assert len(planned(RequestedTopic("t", 10_000, 1)).partitions) == 10_000


def test_partitions_have_equally_many_replicas():
    """A topic has one replication factor."""
    new = RequestedTopic("t", assignments={0: [1], 1: [1, 2]})
    assert refusal(planned, new, cluster(1, 2)) is ErrorCode.INVALID_REPLICA_ASSIGNMENT


@pytest.mark.parametrize("name", ["", ".", "..", "a b", "ä", "a/b", "x" * 250, "a\x00"])
def test_an_illegal_name_is_refused(name):
    """Names are letters, digits, '.', '_' and '-', at most 249 of them."""
    assert refusal(planned, RequestedTopic(name, 1, 1)) is ErrorCode.INVALID_TOPIC_EXCEPTION


@pytest.mark.parametrize("name", ["a", "A-z_0.9", "...", "x" * 249])
def test_a_legal_name_is_taken(name):
    """All that is not refused."""
    assert planned(RequestedTopic(name, 1, 1)).name == name


def test_a_name_that_exists_is_refused():
    """With its own code."""
    code = refusal(planned, RequestedTopic("t", 1, 1), cluster(1, topics=["t"]))
    assert code is ErrorCode.TOPIC_ALREADY_EXISTS


def test_names_that_differ_in_dot_and_underscore_collide():
    """Their metrics would have the same name."""
    image = cluster(1, topics=["a.b_c"])
    assert (
        refusal(planned, RequestedTopic("a_b.c", 1, 1), image) is ErrorCode.INVALID_TOPIC_EXCEPTION
    )
    assert planned(RequestedTopic("a-b.c", 1, 1), image).name == "a-b.c"


def grown(count, assignments=None, *, brokers=(1,), factor=1):
    image = cluster(*brokers)
    topic = planned(RequestedTopic("t", 2, factor), image)
    return plan_growth(topic, count, assignments, image, 0)


def test_growth_adds_partitions_and_leaves_the_others():
    """Partitions keep their numbers, records stay where they are."""
    topic = grown(4, brokers=(1, 2, 3))
    assert replicas_of(topic) == [(1,), (2,), (3,), (1,)]
    assert replicas_of(grown(3, [[3, 2]], brokers=(1, 2, 3), factor=2))[2] == (3, 2)


@pytest.mark.parametrize(
    ("count", "assignments", "code"),
    [
        (2, None, ErrorCode.INVALID_PARTITIONS),
        (1, None, ErrorCode.INVALID_PARTITIONS),
        (0, None, ErrorCode.INVALID_PARTITIONS),
        (4, [[1]], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (3, [[9]], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (3, [[]], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    ],
)
def test_what_cannot_grow_is_refused(count, assignments, code):
    """A topic of two partitions on one broker."""
    assert refusal(grown, count, assignments) is code


def test_added_partitions_have_as_many_replicas_as_the_others():
    """A topic has one replication factor."""
    code = refusal(lambda: grown(3, [[1, 2]], brokers=(1, 2)))
    assert code is ErrorCode.INVALID_REPLICA_ASSIGNMENT


def apart(new, racks, start=0, away=None):
    """Plan with the rule of `cores`: no two replicas of a partition on one rack."""
    brokers = {b: BrokerImage(b, {}, rack) for b, rack in racks.items()}
    image = ClusterImage("c", brokers=brokers)
    return plan_topic(new, ID, image, DEFAULTS, start, away or {}, apart=True)


TWO_MACHINES = {1: "a", 2: "a", 3: "a", 11: "b", 12: "b", 13: "b"}


@pytest.mark.parametrize("start", range(12))
def test_brokers_of_cores_never_share_a_machine_between_two_replicas(start):
    """From wherever it begins, also if one machine has more brokers than the other."""
    for racks in (
        TWO_MACHINES,
        {1: "a", 2: "a", 3: "a", 4: "a", 11: "b"},
        {1: "a", 2: "a", 3: None},
    ):
        topic = apart(RequestedTopic("t", 12, 2), racks, start)
        for partition in topic.partitions:
            first, second = (racks[broker] for broker in partition.replicas)
            assert first != second
        assert {partition.leader for partition in topic.partitions} == set(racks)


def test_more_replicas_than_machines_are_refused_with_the_way_out():
    """However many brokers are there; a dead one's machine counts, and one replica fits."""
    with pytest.raises(OttlaError) as raised:
        apart(RequestedTopic("t", 1, 3), TWO_MACHINES)
    assert raised.value.code is ErrorCode.INVALID_REPLICATION_FACTOR
    assert "the registered brokers are on 2: a, b." in raised.value.message
    assert "at most 2 replica(s)" in raised.value.message
    (partition,) = apart(RequestedTopic("t", 1, 3), TWO_MACHINES, away={21: "c"}).partitions
    assert (partition.replicas[2], partition.isr) == (21, partition.replicas[:2])
    alone = dict.fromkeys((1, 2), "a")
    assert replicas_of(apart(RequestedTopic("t", 4, 1), alone)) == [(1,), (2,), (1,), (2,)]


def test_an_assignment_onto_one_machine_is_refused_for_brokers_of_cores():
    """Of a new topic, and of a topic that grows."""
    with pytest.raises(OttlaError) as raised:
        apart(RequestedTopic("t", assignments={0: [1, 11], 1: [12, 13]}), TWO_MACHINES)
    assert raised.value.code is ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert "partition 1: brokers 13 and 12 are both on b" in raised.value.message
    topic = apart(RequestedTopic("t", assignments={0: [1, 11]}), TWO_MACHINES)
    assert replicas_of(topic) == [(1, 11)]
    brokers = {b: BrokerImage(b, {}, rack) for b, rack in TWO_MACHINES.items()}
    image = ClusterImage("c", brokers=brokers)
    with pytest.raises(OttlaError, match="both on a"):
        plan_growth(topic, 2, [[1, 2]], image, 0, apart=True)
    assert replicas_of(plan_growth(topic, 2, [[1, 2]], image, 0)) == [(1, 11), (1, 2)]
