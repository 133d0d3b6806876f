"""Laws of groups of the consumer protocol (KIP-848)."""

from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.base.errors import ErrorCode
from ottla.base.ids import TopicPartition
from ottla.group.model.consumer_group import ConsumerGroupState
from ottla.group.model.turn import Call
from ottla.group.records.stored import CommittedOffset, OffsetRecord
from ottla.group.values.topics import NOTHING, AssignedSlot, Share
from ottla.wire.messages.consumer_groups import ConsumerGroupHeartbeatRequest
from tests.unit.group.consumer_driver import GROUP, Cluster, Member, World, settle


def all_of(world: World, *names: str) -> Share:
    return frozenset(
        AssignedSlot(world.shapes[name].id, index)
        for name in names
        for index in range(world.shapes[name].partitions)
    )


def test_the_first_member_gets_everything_with_its_join() -> None:
    """One heartbeat is join, assignment and all."""
    world = World(t=3)
    member = Member(Cluster(world), "a", ["t"])
    assert member.beat() is ErrorCode.NONE
    assert (member.epoch, member.owned) == (2, all_of(world, "t"))
    assert member.cluster.group.state is ConsumerGroupState.STABLE


def test_a_partition_is_given_only_once_it_was_given_back() -> None:
    """The second member waits for what the first still has, and the first keeps the rest."""
    world = World(t=4)
    cluster = Cluster(world)
    a, b = Member(cluster, "a", ["t"]), Member(cluster, "b", ["t"])
    a.beat()
    b.beat()
    assert b.owned == NOTHING
    had = a.owned
    a.beat()  # It is asked to give back two, and keeps the others all the while.
    kept = a.owned
    assert len(kept) == 2
    assert kept < had
    b.beat()
    assert b.owned == NOTHING, "nobody said yet that they are given back"
    a.beat()
    b.beat()
    assert b.owned == had - kept
    settle(a, b)
    assert cluster.group.state is ConsumerGroupState.STABLE


def test_who_waits_for_partitions_is_asked_to_report_sooner() -> None:
    """The interval is the broker's again once it has all it shall have."""
    world = World(t=4)
    cluster = Cluster(world)
    a, b = Member(cluster, "a", ["t"]), Member(cluster, "b", ["t"])
    assert cluster.send(a.request()).heartbeat_interval_ms == 5_000
    a.beat()
    answer = cluster.send(b.request())
    assert answer.heartbeat_interval_ms == 1_000
    b.hear(answer)
    a.beat()
    a.beat()
    answer = cluster.send(b.request())
    assert (answer.heartbeat_interval_ms, answer.assignment is not None) == (5_000, True)


def test_who_keeps_what_it_has_is_not_stopped() -> None:
    """A member that leaves disturbs nobody else: they only get more."""
    world = World(t=6)
    cluster = Cluster(world)
    members = [Member(cluster, name, ["t"]) for name in "abc"]
    settle(*members)
    a, b, c = members
    before = [a.owned, b.owned]
    assert c.leave() is ErrorCode.NONE
    settle(a, b)
    assert before[0] < a.owned
    assert before[1] < b.owned
    assert a.owned | b.owned == all_of(world, "t")


def test_a_silent_member_loses_its_place() -> None:
    """After the session timeout the others have its partitions, and it is fenced."""
    world = World(t=2)
    cluster = Cluster(world)
    a, b = Member(cluster, "a", ["t"]), Member(cluster, "b", ["t"])
    settle(a, b)
    cluster.advance(30_000)
    a.beat()
    cluster.advance(30_000)
    settle(a)
    assert a.owned == all_of(world, "t")
    assert b.beat() is ErrorCode.UNKNOWN_MEMBER_ID


def test_who_does_not_give_back_in_time_is_out() -> None:
    """A member that reports but never gives back holds the others up for its rebalance timeout."""
    world = World(t=2)
    cluster = Cluster(world)
    a, b = Member(cluster, "a", ["t"]), Member(cluster, "b", ["t"])
    a.beat()
    b.beat()
    a.beat()
    a.has_news = False  # It goes on without a word about its partitions.
    for _ in range(7):
        cluster.advance(10_000)
        b.beat()
        code = a.beat()
        a.has_news = False
    assert code is ErrorCode.UNKNOWN_MEMBER_ID or "a" not in cluster.group.members
    settle(b)
    assert b.owned == all_of(world, "t")


def test_a_lost_answer_does_no_harm() -> None:
    """A member that never heard of its new epoch is understood in the old one."""
    world = World(t=2)
    cluster = Cluster(world)
    a, b = Member(cluster, "a", ["t"]), Member(cluster, "b", ["t"])
    settle(a, b)
    b.leave()
    epoch = a.epoch
    cluster.send(a.request())
    assert cluster.group.current["a"].epoch > epoch
    a.has_news = True
    settle(a)
    assert a.owned == all_of(world, "t")


def test_an_epoch_that_is_not_the_members_is_fenced() -> None:
    """A member ahead of or far behind the coordinator has to start anew."""
    cluster = Cluster(World(t=1))
    a = Member(cluster, "a", ["t"])
    settle(a)
    a.epoch = 9
    assert a.beat() is ErrorCode.FENCED_MEMBER_EPOCH
    settle(a)
    assert len(a.owned) == 1


def test_a_static_member_that_is_away_keeps_its_partitions() -> None:
    """It comes back under another id to what it had; the group's epoch stays."""
    world = World(t=4)
    cluster = Cluster(world)
    a, b = Member(cluster, "a", ["t"], instance_id="one"), Member(cluster, "b", ["t"])
    settle(a, b)
    had, epoch = a.owned, cluster.group.epoch
    assert a.leave(for_a_while=True) is ErrorCode.NONE
    settle(b)
    assert b.owned.isdisjoint(had)
    back = Member(cluster, "a2", ["t"], instance_id="one")
    settle(back, b)
    assert (back.owned, cluster.group.epoch) == (had, epoch)
    assert sorted(cluster.group.members) == ["a2", "b"]


def test_an_instance_id_in_use_is_not_given_away() -> None:
    """Only who has said that it will be away can be replaced."""
    cluster = Cluster(World(t=1))
    settle(Member(cluster, "a", ["t"], instance_id="one"))
    intruder = Member(cluster, "x", ["t"], instance_id="one")
    assert intruder.beat() is ErrorCode.UNRELEASED_INSTANCE_ID


def test_a_static_member_away_for_too_long_is_out() -> None:
    """Its session goes on while it is away."""
    world = World(t=2)
    cluster = Cluster(world)
    a, b = Member(cluster, "a", ["t"], instance_id="one"), Member(cluster, "b", ["t"])
    settle(a, b)
    a.leave(for_a_while=True)
    for _ in range(10):
        cluster.advance(5_000)
        b.beat()
    settle(b)
    assert b.owned == all_of(world, "t")


def test_new_partitions_and_topics_are_shared_out() -> None:
    """The next heartbeat after a change of the topics shares them out anew."""
    world = World(t=1)
    cluster = Cluster(world)
    a = Member(cluster, "a", ["t", "later"])
    settle(a)
    world.grow("t", 3)
    settle(a)
    assert a.owned == all_of(world, "t")
    world.grow("later", 2)
    settle(a)
    assert a.owned == all_of(world, "t", "later")
    world.delete("t")
    settle(a)
    assert a.owned == all_of(world, "later")


def test_a_pattern_reads_what_matches_as_a_whole() -> None:
    """Names that only contain a match stay out."""
    world = World(flights=1, flights_old=1, xflights=1)
    cluster = Cluster(world)
    a = Member(cluster, "a", regex="flights.*")
    settle(a)
    assert a.owned == all_of(world, "flights", "flights_old")
    world.grow("flights_new", 2)
    settle(a)
    assert a.owned == all_of(world, "flights", "flights_old", "flights_new")


def test_a_pattern_matches_internal_topics_too() -> None:
    """As in Kafka, where only clients leave them out of a pattern that they resolve themselves."""
    world = World(flights=1, __flights=1, __consumer_offsets=2)
    a = Member(Cluster(world), "a", regex="__.*")
    settle(a)
    assert a.owned == all_of(world, "__flights", "__consumer_offsets")


def test_a_pattern_that_is_none_is_refused() -> None:
    """The error names the pattern, and no group comes of it."""
    cluster = Cluster(World(t=1))
    a = Member(cluster, "a", regex="(")
    assert a.beat() is ErrorCode.INVALID_REGULAR_EXPRESSION
    assert cluster.log == []


def test_the_assignor_most_members_ask_for_is_used() -> None:
    """Two ask for range, one for nothing: runs of neighbours."""
    world = World(t=6)
    cluster = Cluster(world)
    members = [Member(cluster, name, ["t"], assignor="range") for name in "ab"]
    members.append(Member(cluster, "c", ["t"]))
    settle(*members)
    topic = world.shapes["t"].id
    assert [sorted(slot.partition for slot in each.owned) for each in members] == [
        [0, 1],
        [2, 3],
        [4, 5],
    ]
    assert members[0].owned == {AssignedSlot(topic, 0), AssignedSlot(topic, 1)}


def test_what_makes_no_sense_is_refused() -> None:
    """Kafka's error for each, and nothing is written."""
    cluster = Cluster(World(t=1))

    def code(**fields: object) -> ErrorCode:
        request = ConsumerGroupHeartbeatRequest(
            **{  # type: ignore[arg-type]  # Each case has fields of its own.
                "group_id": GROUP,
                "member_id": "a",
                "rebalance_timeout_ms": 1_000,
                "subscribed_topic_names": ["t"],
                "topic_partitions": [],
                **fields,
            }
        )
        return ErrorCode(cluster.send(request).error_code)

    assert code(group_id="") is ErrorCode.INVALID_REQUEST
    assert code(member_id="") is ErrorCode.INVALID_REQUEST
    assert code(instance_id="") is ErrorCode.INVALID_REQUEST
    assert code(rebalance_timeout_ms=-1) is ErrorCode.INVALID_REQUEST
    assert code(topic_partitions=None) is ErrorCode.INVALID_REQUEST
    assert code(subscribed_topic_names=None) is ErrorCode.INVALID_REQUEST
    assert code(member_epoch=-3) is ErrorCode.INVALID_REQUEST
    assert code(member_epoch=-2) is ErrorCode.INVALID_REQUEST
    assert code(server_assignor="best") is ErrorCode.UNSUPPORTED_ASSIGNOR
    assert code(member_id=" ") is ErrorCode.INVALID_REQUEST
    assert code(rack_id=" ") is ErrorCode.INVALID_REQUEST
    assert code(member_epoch=3) is ErrorCode.GROUP_ID_NOT_FOUND
    assert code(member_epoch=-1) is ErrorCode.GROUP_ID_NOT_FOUND
    assert cluster.log == []


def test_a_member_without_an_instance_id_cannot_report_one() -> None:
    """An instance id that no member has is unknown, whoever names it; also when leaving."""
    cluster = Cluster(World(t=1))
    a = Member(cluster, "a", ["t"])
    settle(a)
    a.instance_id = "one"
    assert a.beat() is ErrorCode.UNKNOWN_MEMBER_ID
    a.epoch = cluster.group.epoch
    assert a.leave() is ErrorCode.UNKNOWN_MEMBER_ID
    assert list(cluster.group.members) == ["a"]


def test_a_full_group_takes_nobody_in() -> None:
    """GROUP_MAX_SIZE_REACHED, and the members it has are not disturbed."""
    cluster = Cluster(World(t=1), consumer_max_size=1)
    settle(Member(cluster, "a", ["t"]))
    assert Member(cluster, "b", ["t"]).beat() is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert list(cluster.group.members) == ["a"]


def test_a_partition_to_be_given_back_is_described_with_its_member() -> None:
    """The member may still read it; a member without a pattern is described with an empty one."""
    cluster = Cluster(World(t=3))
    a, b = Member(cluster, "a", ["t"]), Member(cluster, "b", ["t"])
    settle(a)
    b.beat()
    a.beat()
    call = Call("describe", 1, client_id="", client_host="", nonce="")
    cluster.carry_out(cluster.coordinator.describe_consumer_group(call, GROUP, cluster.world))
    described = cluster.answers.pop("describe")
    held = {
        member.member_id: [each.partitions for each in member.assignment.topic_partitions]
        for member in described.members
    }
    assert held == {"a": [[0, 1, 2]], "b": []}
    wanted = [
        sum(len(each.partitions) for each in member.target_assignment.topic_partitions)
        for member in described.members
    ]
    assert wanted == [2, 1]
    assert [member.subscribed_topic_regex for member in described.members] == ["", ""]


def test_another_coordinator_knows_all_of_it() -> None:
    """After a fail-over members go on in their epochs, and nothing is shared out anew."""
    world = World(t=5)
    cluster = Cluster(world)
    members = [Member(cluster, name, ["t"]) for name in "abc"]
    settle(*members)
    before = [(each.epoch, each.owned) for each in members]
    written = len(cluster.log)
    cluster.fail_over()
    settle(*members)
    assert [(each.epoch, each.owned) for each in members] == before
    assert len(cluster.log) == written


def test_offsets_outlive_a_change_of_protocol() -> None:
    """An empty classic group turns into a consumer group, and keeps what it committed."""
    cluster = Cluster(World(t=1))
    place = TopicPartition("t", 0)
    committed = CommittedOffset(7, -1, "", 0)
    cluster.coordinator.registry.apply(OffsetRecord(GROUP, place, committed))
    a = Member(cluster, "a", ["t"])
    settle(a)
    assert cluster.group.offsets == {place: committed}
    cluster.fail_over()
    assert cluster.group.offsets == {}, "the offset was never in the log"


ACTIONS = st.lists(
    st.tuples(
        st.sampled_from(["beat", "beat", "beat", "leave", "crash", "grow", "fail over", "wait"]),
        st.integers(0, 4),
    ),
    max_size=60,
)


@settings(deadline=None, max_examples=150)
@given(ACTIONS)
def test_no_two_members_have_the_same_partition(actions: list[tuple[str, int]]) -> None:
    """Whatever happens in between: what members hold is disjoint, and all is read at the end."""
    world = World(t=4, u=3)
    cluster = Cluster(world)
    members = [Member(cluster, f"m{number}", ["t", "u"][: 1 + number % 2]) for number in range(5)]
    alive: set[int] = set()
    for action, number in actions:
        member = members[number]
        if action == "beat":
            member.beat()
            alive.add(number)
        elif action == "leave" and number in alive:
            member.leave()
            alive.discard(number)
        elif action == "crash" and number in alive:
            members[number] = Member(cluster, f"{member.member_id}'", member.topics)
            alive.discard(number)
        elif action == "grow":
            world.grow("u", world.shapes["u"].partitions + 1)
        elif action == "fail over":
            cluster.fail_over()
        elif action == "wait":
            cluster.advance(15_000)
            for each in alive:
                members[each].beat()
        held = [slot for each in members for slot in each.owned]
        assert len(held) == len(set(held))
    everyone = [Member(cluster, f"last{number}", ["t", "u"]) for number in range(2)]
    for _ in range(8):
        cluster.advance(10_000)
        for each in everyone:
            each.beat()
    settle(*everyone)
    assert everyone[0].owned | everyone[1].owned == all_of(world, "t", "u")
    assert everyone[0].owned.isdisjoint(everyone[1].owned)
