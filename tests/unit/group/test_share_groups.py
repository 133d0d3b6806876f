"""Membership of share groups: who looks after what, and what survives (KIP-932)."""

from uuid import UUID

from ottla.base.errors import ErrorCode
from ottla.group.consumer.assignors import Subscriber, simple
from ottla.group.coordinator.coordinator import GroupCoordinator
from ottla.group.model.turn import Call, GroupDecision, Moment
from ottla.group.records.share import TopicState
from ottla.group.records.stored import decode, encode
from ottla.group.share.groups import Allowed
from ottla.group.share.heartbeats import HeartbeatResult
from ottla.group.values.settings import GroupSettings, Pace
from ottla.group.values.topics import AssignedSlot, Share, share_of
from ottla.wire.messages.classic_membership import JoinGroupRequest
from ottla.wire.messages.consumer_groups import ShareGroupHeartbeatRequest
from tests.unit.group.consumer_driver import World

GROUP = "workers"
PACE = Pace(45_000, 5_000)
TOPIC = UUID(int=1)


class Queue:
    """A coordinator with one topic `t`, and the log that it writes."""

    def __init__(self, partitions: int = 2, **settings: int) -> None:
        self.world = World(t=partitions)
        self.settings = GroupSettings(**settings)
        self.coordinator = GroupCoordinator(self.settings)
        self.log: list[tuple[bytes, bytes | None]] = []
        self.now_ms = 0

    @property
    def at(self) -> Moment:
        return Moment(self.now_ms, 1_700_000_000_000 + self.now_ms)

    def carry_out(self, decision: GroupDecision) -> object:
        for record in decision.records:
            self.log.append(encode(record))
            self.coordinator.registry.apply(record)
        return decision.replies[0].message if decision.replies else None

    def hear(self, member: str, epoch: int, topics: list[str] | None = None) -> HeartbeatResult:
        request = ShareGroupHeartbeatRequest(
            group_id=GROUP, member_id=member, member_epoch=epoch, subscribed_topic_names=topics
        )
        call = Call("ticket", 1, client_id="c", client_host="/h")
        heard = self.carry_out(
            self.coordinator.share.heartbeat(call, request, self.world, PACE, self.at)
        )
        assert isinstance(heard, HeartbeatResult)
        return heard

    def begin(self, *partitions: int) -> None:
        """The state of partitions was begun elsewhere."""
        topics = [TopicState(TOPIC, "t", frozenset(partitions))]
        call = Call("ticket", 1)
        self.carry_out(self.coordinator.share.note_begun(call, GROUP, topics, self.at))

    def replayed(self) -> GroupCoordinator:
        coordinator = GroupCoordinator(self.settings)
        for key, value in self.log:
            record = decode(key, value)
            assert record is not None
            coordinator.registry.apply(record)
        return coordinator


def given(heard: HeartbeatResult) -> Share | None:
    assignment = heard.response.assignment
    return None if assignment is None else share_of(assignment.topic_partitions)


def slots(*partitions: int) -> Share:
    return frozenset(AssignedSlot(TOPIC, index) for index in partitions)


def test_a_member_gets_partitions_once_their_state_has_begun() -> None:
    """First it is told of none, and the coordinator of what is to be begun."""
    queue = Queue()
    first = queue.hear("a", 0, ["t"])
    assert given(first) == slots()
    assert first.to_begin == (TopicState(TOPIC, "t", frozenset({0, 1})),)
    queue.begin(0, 1)
    second = queue.hear("a", first.response.member_epoch)
    assert given(second) == slots(0, 1)
    assert second.to_begin == ()


def test_more_members_than_partitions_look_after_the_same_ones() -> None:
    """Every partition has one, every member has one, and nobody gives anything back first."""
    queue = Queue(partitions=2)
    epochs = {}
    for member in ("a", "b", "c"):
        epochs[member] = queue.hear(member, 0, ["t"]).response.member_epoch
    queue.begin(0, 1)
    shares = [given(queue.hear(member, epochs[member])) for member in epochs]
    assert all(share is not None and len(share) == 1 for share in shares)
    assert frozenset().union(*(share for share in shares if share)) == slots(0, 1)


def test_the_assignor_moves_no_more_than_it_must() -> None:
    """Who has a partition keeps it; a further member takes the least attended one."""
    counts = {TOPIC: 2}
    topics = frozenset({TOPIC})
    before = {"a": slots(0), "b": slots(1), "c": slots(1)}
    members = {name: Subscriber(topics, None, share) for name, share in before.items()}
    assert simple(members, counts) == before
    members["d"] = Subscriber(topics, None, slots())
    assert simple(members, counts) == before | {"d": slots(0)}


def test_a_silent_member_is_put_out() -> None:
    """After its session timeout; then it is unknown, and the others get what it had."""
    queue = Queue(partitions=2)
    epochs = {member: queue.hear(member, 0, ["t"]).response.member_epoch for member in ("a", "b")}
    queue.begin(0, 1)
    epochs["b"] = queue.hear("b", epochs["b"]).response.member_epoch
    queue.now_ms = 44_000
    epochs["b"] = queue.hear("b", epochs["b"]).response.member_epoch
    queue.now_ms = 45_000
    queue.carry_out(queue.coordinator.on_deadline(queue.at))
    assert given(queue.hear("b", epochs["b"])) == slots(0, 1)
    assert queue.hear("a", epochs["a"]).response.error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_an_epoch_of_long_ago_is_fenced() -> None:
    """The one before is not: the answer may have been lost."""
    queue = Queue()
    first = queue.hear("a", 0, ["t"]).response.member_epoch
    queue.begin(0, 1)
    second = queue.hear("a", first).response.member_epoch
    assert queue.hear("a", first).response.error_code == ErrorCode.NONE
    queue.hear("b", 0, ["t"])
    queue.hear("a", second)
    assert queue.hear("a", first).response.error_code == ErrorCode.FENCED_MEMBER_EPOCH


def test_a_group_takes_no_more_members_than_its_size() -> None:
    """group.share.max.size."""
    queue = Queue(share_max_size=1)
    queue.hear("a", 0, ["t"])
    refused = queue.hear("b", 0, ["t"]).response
    assert refused.error_code == ErrorCode.GROUP_MAX_SIZE_REACHED


def test_who_joins_says_what_it_reads() -> None:
    """Without topics, or without an id of its own, it is refused."""
    queue = Queue()
    assert queue.hear("a", 0).response.error_code == ErrorCode.INVALID_REQUEST
    assert queue.hear("", 0, ["t"]).response.error_code == ErrorCode.INVALID_REQUEST
    assert queue.hear("a" * 37, 0, ["t"]).response.error_code == ErrorCode.INVALID_REQUEST
    assert queue.hear("a", 3).response.error_code == ErrorCode.GROUP_ID_NOT_FOUND


def test_new_partitions_of_a_topic_are_begun_and_given_out() -> None:
    """A topic that grows is noticed by the next heartbeat."""
    queue = Queue(partitions=1)
    epoch = queue.hear("a", 0, ["t"]).response.member_epoch
    queue.begin(0)
    epoch = queue.hear("a", epoch).response.member_epoch
    queue.world.grow("t", 3)
    heard = queue.hear("a", epoch)
    assert heard.to_begin == (TopicState(TOPIC, "t", frozenset({1, 2})),)
    queue.begin(1, 2)
    assert given(queue.hear("a", heard.response.member_epoch)) == slots(0, 1, 2)


def test_the_log_gives_a_share_group_back() -> None:
    """As Kafka's records of types 10 to 15, after any of these steps."""
    queue = Queue()
    first = queue.hear("a", 0, ["t"]).response.member_epoch
    queue.begin(0, 1)
    queue.hear("a", first)
    queue.hear("b", 0, ["t"])
    queue.hear("b", -1)
    found = queue.replayed().share.groups[GROUP]
    known = queue.coordinator.share.groups[GROUP]
    for name in ("members", "epoch", "target", "target_epoch", "current", "begun", "deleting"):
        assert getattr(found, name) == getattr(known, name), name


def test_state_is_deleted_step_by_step_and_then_the_group() -> None:
    """What is being deleted is not begun anew; nothing of the group is left in the end."""
    queue = Queue()
    share = queue.coordinator.share
    epoch = queue.hear("a", 0, ["t"]).response.member_epoch
    queue.begin(0, 1)
    call = Call("ticket", 1)
    busy = queue.carry_out(share.start_deleting(call, GROUP, None, queue.at))
    assert busy == Allowed(ErrorCode.NON_EMPTY_GROUP)
    queue.hear("a", epoch)
    queue.hear("a", -1)
    allowed = queue.carry_out(share.start_deleting(call, GROUP, None, queue.at))
    assert isinstance(allowed, Allowed)
    assert allowed.topics == (TopicState(TOPIC, "t", frozenset({0, 1})),)
    early = queue.carry_out(share.delete(call, GROUP, queue.at))
    assert early is ErrorCode.NON_EMPTY_GROUP
    again = queue.hear("a", 0, ["t"])
    assert (again.to_begin, again.to_delete) == ((), allowed.topics)
    assert queue.replayed().share.groups[GROUP].deleting == {TOPIC: allowed.topics[0]}
    queue.hear("a", -1)
    queue.carry_out(share.note_deleted(call, GROUP, [TOPIC], queue.at))
    assert queue.carry_out(share.delete(call, GROUP, queue.at)) is ErrorCode.NONE
    assert queue.replayed().share.groups == {}


def test_a_share_group_is_no_group_of_another_kind() -> None:
    """Members of the classic protocol are refused by it, and it by theirs."""
    queue = Queue()
    queue.hear("a", 0, ["t"])
    join = JoinGroupRequest(
        group_id=GROUP, session_timeout_ms=10_000, rebalance_timeout_ms=10_000, member_id=""
    )
    answer = queue.carry_out(queue.coordinator.members.join(Call("ticket", 4), join, queue.at))
    assert answer.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL  # type: ignore[union-attr]
    assert GROUP not in queue.coordinator.registry.groups
    (listed,) = queue.coordinator.list_groups([], ["share"])
    assert (listed.group_id, listed.group_state, listed.group_type) == (GROUP, "Stable", "share")
