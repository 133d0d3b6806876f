"""Groups change from the classic protocol to the consumer protocol and back, with members."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ottla.base.errors import ErrorCode
from ottla.base.ids import TopicPartition
from ottla.group.records.consumer import MemberState
from ottla.group.records.stored import CommittedOffset, OffsetRecord
from ottla.wire.messages.classic_membership import JoinGroupRequest, JoinGroupRequestProtocol
from tests.unit.group.classic_client import Classic
from tests.unit.group.consumer_driver import GROUP, Cluster, Member, World


def places(member):
    """What a member of either protocol reads now."""
    if isinstance(member, Classic):
        return member.owned
    world = member.cluster.world
    return frozenset((world.name_of(slot.topic_id), slot.partition) for slot in member.owned)


def check(members):
    """Nobody has what another one has."""
    had = [place for member in members for place in places(member)]
    assert len(had) == len(set(had)), [places(member) for member in members]


def settle(*members, steps=60):
    """Everyone does one thing in turn until nothing more happens; at no time is there a double."""

    def seen():
        return [
            (places(member), getattr(member, "epoch", None), getattr(member, "is_settled", True))
            for member in members
        ]

    for _ in range(steps):
        before = seen()
        for _ in range(3):
            for member in members:
                if isinstance(member, Classic):
                    member.step()
                else:
                    assert member.beat() in (ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID)
                check(members)
        if seen() == before and all(is_settled for _, _, is_settled in before):
            return
    raise AssertionError("the group does not come to rest")


def whole(members, count=6):
    check(members)
    assert len({place for member in members for place in places(member)}) == count


@pytest.mark.parametrize("is_cooperative", [False, True])
def test_a_group_goes_up_and_down_again_with_its_members(is_cooperative):
    """Classic members are replaced one by one and back; each time all partitions are read."""
    cluster = Cluster(World(t=6))
    old = [Classic(cluster, name, is_cooperative=is_cooperative) for name in ("a", "b")]
    settle(*old)
    whole(old)
    assert [len(member.owned) for member in old] == [3, 3]
    new = Member(cluster, "new", ["t"])
    settle(*old, new)
    whole([*old, new])
    assert cluster.coordinator.registry.groups == {}
    assert sorted(len(places(member)) for member in [*old, new]) == [2, 2, 2]
    old[0].leave()
    settle(old[1], new)
    whole([old[1], new])
    newer = Member(cluster, "newer", ["t"])
    old[1].leave()
    settle(new, newer)
    whole([new, newer])
    # Back again.
    back = [Classic(cluster, name, is_cooperative=is_cooperative) for name in ("c", "d")]
    new.leave()
    settle(newer, *back)
    whole([newer, *back])
    newer.leave()
    settle(*back)
    whole(back)
    assert cluster.coordinator.registry.consumer_groups == {}
    assert cluster.coordinator.registry.groups[GROUP].state == "Stable"


def test_what_was_read_is_read_on_while_the_group_converts():
    """A cooperative member keeps its share until it is asked to give a part of it back."""
    cluster = Cluster(World(t=6))
    member = Classic(cluster, "a", is_cooperative=True)
    settle(member)
    new = Member(cluster, "new", ["t"])
    new.beat()
    assert len(member.owned) == 6
    assert places(new) == frozenset()
    while len(member.owned) == 6:
        member.step()
    assert len(member.owned) == 3
    assert places(new) == frozenset()
    settle(member, new)
    assert member.codes == []
    whole([member, new])


def test_offsets_outlive_both_changes():
    """What was committed stays where it is, and zombies cannot move it."""
    cluster = Cluster(World(t=6))
    a = Classic(cluster, "a")
    settle(a)
    assert a.commit(7) is ErrorCode.NONE
    new = Member(cluster, "new", ["t"])
    settle(a, new)
    generation = a.generation
    assert a.commit(8) is ErrorCode.NONE
    a.generation = generation + 1
    assert a.commit(3) is ErrorCode.ILLEGAL_GENERATION
    a.generation = generation
    group = cluster.coordinator.registry.consumer_groups[GROUP]
    assert group.offsets[TopicPartition("t", 0)].offset == 8
    new.leave()
    assert cluster.coordinator.registry.groups[GROUP].offsets[TopicPartition("t", 0)].offset == 8
    settle(a)
    assert a.commit(9) is ErrorCode.NONE
    assert a.codes == [], "it was never fenced"


@pytest.mark.parametrize(
    ("policy", "goes_up", "goes_down"),
    [
        ("bidirectional", True, True),
        ("upgrade", True, False),
        ("downgrade", False, True),
    ],
)
def test_the_policy_says_which_way_a_group_may_go(policy, goes_up, goes_down):
    """A refusal names the setting; a group that may not go down stays with its classic members."""
    cluster = Cluster(World(t=6), migration_policy=policy)
    a = Classic(cluster, "a")
    settle(a)
    new = Member(cluster, "new", ["t"])
    answer = cluster.send(new.request())
    if not goes_up:
        assert answer.error_code == ErrorCode.GROUP_ID_NOT_FOUND
        assert f"group.consumer.migration.policy is {policy}" in answer.error_message
        a.leave()
    new.hear(cluster.send(new.request()))
    b = Classic(cluster, "b")
    settle(*([a] if goes_up else []), b, new)
    new.leave()
    assert (GROUP in cluster.coordinator.registry.groups) == goes_down
    settle(*([a] if goes_up else []), b)
    whole([*([a] if goes_up else []), b])


def test_without_migration_no_group_has_members_of_both_protocols():
    """`disabled` refuses a classic join to a consumer group, and the other way round."""
    cluster = Cluster(World(t=6), migration_policy="disabled")
    new = Member(cluster, "new", ["t"])
    settle(new)
    a = Classic(cluster, "a")
    a.step()
    a.step()
    assert a.codes == [ErrorCode.INCONSISTENT_GROUP_PROTOCOL]
    new.leave()
    settle(a)
    whole([a])
    answer = cluster.send(new.request())
    assert answer.error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert "group.consumer.migration.policy is disabled" in answer.error_message


def test_another_coordinator_goes_on_in_the_middle():
    """After each step of an upgrade and a downgrade the log alone is enough to go on."""
    cluster = Cluster(World(t=6))
    a = Classic(cluster, "a", is_cooperative=True)
    b = Classic(cluster, "b", is_cooperative=True)
    settle(a, b)
    new = Member(cluster, "new", ["t"])
    for _ in range(12):
        cluster.fail_over()
        for member in (new, a, b):
            if isinstance(member, Classic):
                # Nobody answers what the coordinator before was asked.
                member.step()
            else:
                member.beat()
            check([a, b, new])
    settle(a, b, new)
    whole([a, b, new])
    new.leave()
    cluster.fail_over()
    assert cluster.coordinator.registry.groups[GROUP].state == "PreparingRebalance"
    settle(a, b)
    whole([a, b])
    cluster.fail_over()
    assert cluster.coordinator.registry.groups[GROUP].state == "Stable"


def test_the_last_member_of_the_consumer_protocol_may_also_fall_silent():
    """Its session ends, and the group goes on as a classic one."""
    cluster = Cluster(World(t=6))
    a = Classic(cluster, "a")
    settle(a)
    new = Member(cluster, "new", ["t"])
    settle(a, new)
    for _ in range(9):
        cluster.advance(5_000)
        a.step()
    settle(a)
    whole([a])
    causes = [(cause.kind.value, cause.setting) for _, cause in cluster.flight.causes]
    assert causes == [
        ("late", "group.consumer.session.timeout.ms=45000"),
        ("protocol changed", "group.consumer.migration.policy=bidirectional"),
    ]
    assert (cluster.flight.protocol, cluster.flight.ending) == ("classic", "stable")


@pytest.mark.parametrize("silence_ms", [30_000, 60_000])
def test_a_classic_member_that_is_late_is_out(silence_ms):
    """By its session timeout if it says nothing, by its rebalance timeout if it does not join."""
    cluster = Cluster(World(t=6))
    a = Classic(cluster, "a", is_cooperative=True)
    settle(a)
    new = Member(cluster, "new", ["t"])
    new.beat()
    waited_ms = 0
    while waited_ms < silence_ms:
        assert "a-1" in cluster.group.members
        if silence_ms == 60_000:
            a._beat()  # It reports, and does not come.
        cluster.advance(5_000)
        waited_ms += 5_000
        new.beat()
    assert "a-1" not in cluster.group.members
    new.beat()
    whole([new])
    setting = "session.timeout.ms=30000" if silence_ms == 30_000 else "max.poll.interval.ms=60000"
    assert ("late", setting) in [
        (cause.kind.value, cause.setting) for _, cause in cluster.flight.causes
    ]


def test_topics_are_followed_where_nobody_leads():
    """The coordinator sees new partitions with the next heartbeat of a classic member."""
    cluster = Cluster(World(t=6), migration_policy="upgrade")
    a = Classic(cluster, "a")
    settle(a)
    new = Member(cluster, "new", ["t"])
    settle(a, new)
    new.leave()
    settle(a)
    whole([a])
    cluster.world.grow("t", 9)
    settle(a)
    whole([a], 9)
    assert cluster.flight.causes[0][1].kind.value == "topics changed"


def test_a_group_without_room_for_one_more_stays_classic():
    """Else it would be converted for a member that is then refused."""
    cluster = Cluster(World(t=6), consumer_max_size=2)
    a, b = Classic(cluster, "a"), Classic(cluster, "b")
    settle(a, b)
    answer = cluster.send(Member(cluster, "new", ["t"]).request())
    assert answer.error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert "group.consumer.max.size=2" in answer.error_message
    settle(a, b)
    assert list(cluster.coordinator.registry.groups) == [GROUP]


def test_a_static_member_changes_its_protocol_in_place():
    """Whoever had the instance id is fenced, what it had is the new process's, both ways."""
    cluster = Cluster(World(t=6))
    a = Classic(cluster, "a", instance_id="one")
    b = Classic(cluster, "b", instance_id="two")
    settle(a, b)
    had = a.owned
    new = Member(cluster, "new", ["t"], instance_id="one")
    new.beat()
    assert places(new) == had
    a.step()
    assert a.codes == [ErrorCode.FENCED_INSTANCE_ID]
    settle(b, new)
    whole([b, new])
    again = Classic(cluster, "again", instance_id="one")
    settle(b, again)
    whole([b, again])
    assert GROUP in cluster.coordinator.registry.groups
    assert new.beat() is ErrorCode.GROUP_ID_NOT_FOUND, "it is no group of its protocol any more"


def join(
    cluster, protocol_type="consumer", assignor="eager", metadata=b"\0\0\0\0\0\0\xff\xff\xff\xff"
):
    request = JoinGroupRequest(
        group_id=GROUP,
        session_timeout_ms=30_000,
        rebalance_timeout_ms=60_000,
        member_id="who",
        protocol_type=protocol_type,
        protocols=[JoinGroupRequestProtocol(name=assignor, metadata=metadata)],
    )
    stranger = Classic(cluster, "stranger")
    decision = cluster.coordinator.members.join(stranger._call("join"), request, cluster.at)
    return ErrorCode(stranger._at_once(decision).error_code)


def test_who_does_not_fit_into_a_consumer_group_is_refused():
    """Another type of group, no common assignor, bytes that are no subscription."""
    cluster = Cluster(World(t=6))
    a = Classic(cluster, "a")
    new = Member(cluster, "new", ["t"])
    new.beat()
    settle(a, new)
    assert join(cluster, protocol_type="connect") is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert join(cluster, assignor="mine") is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert join(cluster, metadata=b"\0") is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert join(cluster) is ErrorCode.NONE


def test_a_group_that_is_not_of_consumers_is_not_converted():
    """Kafka Connect's groups have another type; the refusal says so, and disturbs nobody."""
    cluster = Cluster(World(t=6))
    assert join(cluster) is ErrorCode.UNKNOWN_MEMBER_ID
    worker = Classic(cluster, "worker")
    request = JoinGroupRequest(
        group_id=GROUP,
        session_timeout_ms=30_000,
        rebalance_timeout_ms=60_000,
        protocol_type="connect",
        protocols=[JoinGroupRequestProtocol(name="sessioned", metadata=b"c")],
    )
    call = worker._call("join", 3)
    cluster.carry_out(cluster.coordinator.members.join(call, request, cluster.at))
    assert cluster.answers[call.ticket].error_code == ErrorCode.NONE
    answer = cluster.send(Member(cluster, "new", ["t"]).request())
    assert answer.error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert "no consumers but connect" in answer.error_message
    assert list(cluster.coordinator.registry.groups) == [GROUP]


@pytest.mark.parametrize("assignor", ["mine", "cooperative-sticky"])
def test_data_of_an_assignor_of_ones_own_stands_in_the_way(assignor):
    """It would be lost; what librdkafka's sticky assignor repeats there nobody misses."""
    cluster = Cluster(World(t=6))
    a = Classic(cluster, "a", assignor=assignor, user_data=b"weights")
    settle(a)
    answer = cluster.send(Member(cluster, "new", ["t"]).request())
    if assignor == "mine":
        assert answer.error_code == ErrorCode.GROUP_ID_NOT_FOUND
        assert "assignor mine hands out data of its own" in answer.error_message
        assert len(a.owned) == 6
        a.step()
        assert a.is_settled
    else:
        assert answer.error_code == ErrorCode.NONE


def test_who_waits_in_a_join_comes_again():
    """The answer does not stay away for ever because the group is another one now."""
    cluster = Cluster(World(t=6), initial_rebalance_delay_ms=3_000)
    a = Classic(cluster, "a")
    for _ in range(3):
        a.step()
    assert cluster.coordinator.registry.groups[GROUP].state == "PreparingRebalance"
    new = Member(cluster, "new", ["t"])
    new.beat()
    settle(a, new)
    whole([a, new])
    assert a.codes == []


def test_a_member_of_the_classic_protocol_is_described_as_one():
    """Administrators see who has still to be changed."""
    cluster = Cluster(World(t=6))
    a = Classic(cluster, "a")
    settle(a)
    new = Member(cluster, "new", ["t"])
    settle(a, new)
    asker = Classic(cluster, "asker")
    decision = cluster.coordinator.describe_consumer_group(
        asker._call("describe"), GROUP, cluster.world
    )
    described = asker._at_once(decision)
    assert {each.member_id: each.member_type for each in described.members} == {"a-1": 0, "new": 1}
    assert cluster.group.current["a-1"].state is MemberState.STABLE


def test_a_group_with_offsets_alone_is_of_no_protocol():
    """It becomes what its first member is."""
    cluster = Cluster(World(t=6))
    committed = CommittedOffset(5, -1, "", 0)
    cluster.coordinator.registry.apply(OffsetRecord(GROUP, TopicPartition("t", 0), committed))
    Member(cluster, "new", ["t"]).beat()
    assert cluster.group.offsets[TopicPartition("t", 0)].offset == 5


ACTIONS = st.lists(
    st.tuples(st.sampled_from(["step", "step", "step", "leave", "fail"]), st.integers(0, 5)),
    max_size=120,
)


@given(ACTIONS, st.booleans())
@settings(max_examples=150, deadline=None)
@example([("step", 0)] * 8 + [("step", 3)] + [("step", 0)] * 8, True)
@example([("step", 0), ("step", 1), ("step", 2), ("leave", 0)], False)
def test_whoever_comes_and_goes_no_two_have_the_same_partition(actions, is_cooperative):
    """Members of both protocols in any order, with coordinators that come and go."""
    cluster = Cluster(World(t=4))
    members = [
        Classic(cluster, f"c{number}", is_cooperative=is_cooperative) for number in range(3)
    ] + [Member(cluster, f"n{number}", ["t"]) for number in range(3)]
    present = set()
    for action, number in actions:
        member = members[number]
        if action == "fail":
            cluster.fail_over()
            for each in members:
                if isinstance(each, Classic):
                    each.forget_answer()
        elif action == "step":
            present.add(number)
            if isinstance(member, Classic):
                member.step()
            else:
                member.beat()
        elif number in present:
            present.discard(number)
            if isinstance(member, Classic) and not member.member_id:
                # It hears its name first: a group waits for whom it gave one.
                member.step()
            if not isinstance(member, Classic) or member.member_id:
                member.leave()
        check(members)
    rest = [members[number] for number in sorted(present)]
    if rest:
        settle(*rest)
        whole(rest, 4)
