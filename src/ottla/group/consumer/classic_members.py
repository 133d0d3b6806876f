"""Members of the classic protocol in a group of the consumer protocol (KIP-848).

They continue to use JoinGroup, SyncGroup and Heartbeat. The member's epoch is its generation. The
answer to a heartbeat asks it to rejoin if it must revoke partitions or can get some; its JoinGroup
names the partitions it owns, and the SyncGroup response has those that it may read now. No member
is the leader.
"""

from collections.abc import Iterable, Sequence

from ottla.base.errors import ErrorCode, OttlaError
from ottla.group.classic.rebalance import join_refused, sync_refused
from ottla.group.consumer.causes import note_step
from ottla.group.consumer.membership import (
    await_join,
    await_sync,
    describe_as,
    end_sync,
    keep_classic_alive,
    replace_static,
    require_instance,
    require_known,
    require_room,
)
from ottla.group.consumer.targets import follow_topics, reconcile
from ottla.group.model.consumer_group import NEW, ConsumerGroup
from ottla.group.model.turn import Call, Turn, change
from ottla.group.records.consumer import ClassicMember, CurrentRecord, MemberMetadata, MemberState
from ottla.group.values.member import CONSUMER_PROTOCOL_TYPE, OfferedProtocol
from ottla.group.values.topics import AssignedSlot, Share, TopicsView, by_topic
from ottla.wire.errors import WireError
from ottla.wire.messages.classic_membership import (
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)
from ottla.wire.stored import (
    AssignmentTopicPartition,
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    decode_versioned,
    encode_versioned,
    read_version,
)

# Assignors whose user data can be dropped: librdkafka's sticky assignor only repeats there which
# partitions the member had.
_KNOWN_ASSIGNORS = ("range", "roundrobin", "sticky", "cooperative-sticky", "uniform")


def subscription_of(protocols: Sequence[OfferedProtocol]) -> ConsumerProtocolSubscription:
    """Decode a member's subscription; all its protocols name the same topics.

    Raises OttlaError (INCONSISTENT_GROUP_PROTOCOL) if the bytes are not a consumer's subscription.
    """
    try:
        return decode_versioned(ConsumerProtocolSubscription, protocols[0].metadata)
    except WireError as error:
        raise OttlaError(
            ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
            f"the metadata of assignor {protocols[0].name} is no subscription: {error}",
        ) from error


def owned_by(subscription: ConsumerProtocolSubscription, topics: TopicsView) -> Share:
    """The partitions that a member reports as owned."""
    return _share(((each.topic, each.partitions) for each in subscription.owned_partitions), topics)


def share_in(assignment: bytes, assignor: str | None, topics: TopicsView) -> Share:
    """Convert a leader's assignment to a set of partitions, without topics that do not exist.

    Raises OttlaError (INCONSISTENT_GROUP_PROTOCOL) if it cannot be converted: the bytes are not a
    consumer's assignment, or an unknown assignor has put user data into it.
    """
    if not assignment:
        return frozenset()
    try:
        read = decode_versioned(ConsumerProtocolAssignment, assignment)
    except WireError as error:
        raise OttlaError(
            ErrorCode.INCONSISTENT_GROUP_PROTOCOL, f"it has an assignment that is none: {error}"
        ) from error
    if read.user_data and assignor not in _KNOWN_ASSIGNORS:
        raise OttlaError(
            ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
            f"its assignor {assignor} hands out data of its own, for which the consumer protocol "
            "has no place",
        )
    return _share(((each.topic, each.partitions) for each in read.assigned_partitions), topics)


def assignment_of(share: Share, protocols: Sequence[OfferedProtocol], topics: TopicsView) -> bytes:
    """Encode partitions as the assignment that a leader would send, in the member's version."""
    version = min(read_version(protocols[0].metadata), ConsumerProtocolAssignment.__versions__[1])
    named = [
        (topics.name_of(topic_id), partitions) for topic_id, partitions in by_topic(share).items()
    ]
    assigned = [
        AssignmentTopicPartition(topic=name, partitions=list(partitions))
        for name, partitions in named
        if name is not None
    ]
    return encode_versioned(ConsumerProtocolAssignment(assigned_partitions=assigned), version)


def _share(named: Iterable[tuple[str, Sequence[int]]], topics: TopicsView) -> Share:
    return frozenset(
        AssignedSlot(shape.id, partition)
        for name, partitions in named
        if (shape := topics.find(name)) is not None
        for partition in partitions
    )


# As in a classic group, a new dynamic member gets its id first.
_MEMBER_ID_REQUIRED_FROM = 4


def join(
    turn: Turn, group: ConsumerGroup, call: Call, request: JoinGroupRequest
) -> JoinGroupResponse:
    """Add or update a member, and answer with its epoch as its generation.

    Under `group.consumer.migration.policy=disabled` a group never has members of both protocols.
    """
    if turn.settings.migration_policy == "disabled":
        return join_refused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    try:
        protocols = _offered(group, request)
        instance_id = request.group_instance_id
        member_id = request.member_id
        if not member_id:
            member_id = f"{instance_id or call.client_id}-{call.nonce}"
            if instance_id is None and call.version >= _MEMBER_ID_REQUIRED_FROM:
                return join_refused(ErrorCode.MEMBER_ID_REQUIRED, member_id)
        _require_acceptable(turn, group, request, member_id)
        subscription = subscription_of(protocols)
    except OttlaError as error:
        return join_refused(error.code)
    _let_in(turn, group, request, member_id)
    is_changed = _update(turn, group, call, request, member_id, protocols, subscription)
    follow_topics(turn, group, is_changed=is_changed)
    before = group.current.get(member_id, NEW)
    after = reconcile(
        before,
        group.target_epoch,
        group.target_of(member_id),
        lambda slot: group.is_taken(slot, member_id),
        owned_by(subscription, turn.topics),
    )
    if after != before:
        change(turn, group, CurrentRecord(group.group_id, member_id, after))
        note_step(turn, group, member_id, before, after)
    keep_classic_alive(turn, group, member_id)
    await_sync(turn, group, member_id)
    return JoinGroupResponse(
        generation_id=after.epoch,
        protocol_type=CONSUMER_PROTOCOL_TYPE,
        protocol_name=protocols[0].name,
        leader="",
        member_id=member_id,
        members=[],
    )


def sync(turn: Turn, group: ConsumerGroup, request: SyncGroupRequest) -> SyncGroupResponse:
    """Answer with the partitions a member may have in its generation."""
    try:
        classic = _require(group, request.member_id, request.group_instance_id)
    except OttlaError as error:
        return sync_refused(error.code)
    current = group.current.get(request.member_id, NEW)
    name = classic.protocols[0].name
    if request.generation_id != current.epoch:
        return sync_refused(ErrorCode.ILLEGAL_GENERATION)
    if request.protocol_type not in (None, CONSUMER_PROTOCOL_TYPE) or (
        request.protocol_name not in (None, name)
    ):
        return sync_refused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    # A member that must revoke partitions has joined, and keeps its epoch until it revoked them.
    if group.epoch > current.epoch and current.state is not MemberState.UNREVOKED_PARTITIONS:
        return sync_refused(ErrorCode.REBALANCE_IN_PROGRESS)
    end_sync(turn, group, request.member_id)
    keep_classic_alive(turn, group, request.member_id)
    return SyncGroupResponse(
        protocol_type=CONSUMER_PROTOCOL_TYPE,
        protocol_name=name,
        assignment=assignment_of(current.assigned, classic.protocols, turn.topics),
    )


def heartbeat(turn: Turn, group: ConsumerGroup, request: HeartbeatRequest) -> ErrorCode:
    """Renew the member's session; REBALANCE_IN_PROGRESS asks it to join again."""
    try:
        _require(group, request.member_id, request.group_instance_id)
    except OttlaError as error:
        return error.code
    current = group.current.get(request.member_id, NEW)
    if request.generation_id != current.epoch:
        return ErrorCode.ILLEGAL_GENERATION
    keep_classic_alive(turn, group, request.member_id)
    # There is no leader that watches the topics, so the coordinator checks them.
    follow_topics(turn, group, is_changed=False)
    # The epoch of a member that must revoke partitions is lower than the group's, too.
    if current.epoch < group.epoch or _can_be_given(group, request.member_id):
        await_join(turn, group, request.member_id)
        return ErrorCode.REBALANCE_IN_PROGRESS
    return ErrorCode.NONE


def _can_be_given(group: ConsumerGroup, member_id: str) -> bool:
    """Whether all partitions that the member still waits for are free now."""
    current = group.current.get(member_id, NEW)
    return current.state is MemberState.UNRELEASED_PARTITIONS and not any(
        group.is_taken(slot, member_id) for slot in group.target_of(member_id)
    )


def _offered(group: ConsumerGroup, request: JoinGroupRequest) -> tuple[OfferedProtocol, ...]:
    """The protocols the member offers; as in Kafka, those it offered before are included.

    Raises OttlaError (INCONSISTENT_GROUP_PROTOCOL) if the classic members share no assignor.
    """
    protocols = tuple(
        OfferedProtocol(each.name, bytes(each.metadata)) for each in request.protocols
    )
    names = {each.name for each in protocols}
    for metadata in group.members.values():
        if metadata.classic is not None:
            names &= {each.name for each in metadata.classic.protocols}
    if request.protocol_type != CONSUMER_PROTOCOL_TYPE or not names:
        raise OttlaError(
            ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
            f"group {group.group_id} is one of consumers, and its members of the classic protocol "
            "need one assignor that all of them offer",
        )
    return protocols


def _require_acceptable(
    turn: Turn, group: ConsumerGroup, request: JoinGroupRequest, member_id: str
) -> None:
    """Check that the member may join.

    Raises OttlaError: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, GROUP_MAX_SIZE_REACHED.
    """
    instance_id = request.group_instance_id
    if instance_id is not None and request.member_id:
        require_instance(group, member_id, instance_id)
    elif instance_id is None or instance_id not in group.static_members:
        require_room(turn, group, member_id)


def _let_in(turn: Turn, group: ConsumerGroup, request: JoinGroupRequest, member_id: str) -> None:
    """Give a static member that joins without a member id its old membership."""
    instance_id = request.group_instance_id
    holder = None if instance_id is None else group.static_members.get(instance_id)
    if holder is not None and not request.member_id:
        replace_static(turn, group, holder, member_id)


def _update(
    turn: Turn,
    group: ConsumerGroup,
    call: Call,
    request: JoinGroupRequest,
    member_id: str,
    protocols: tuple[OfferedProtocol, ...],
    subscription: ConsumerProtocolSubscription,
) -> bool:
    """Update the member from its request; return whether its subscription changed."""
    timeout_ms = request.rebalance_timeout_ms
    metadata = MemberMetadata(
        instance_id=request.group_instance_id,
        rack_id=subscription.rack_id,
        client_id=call.client_id,
        client_host=call.client_host,
        topic_names=tuple(sorted(set(subscription.topics))),
        topic_regex=None,
        rebalance_timeout_ms=request.session_timeout_ms if timeout_ms < 0 else timeout_ms,
        server_assignor=None,
        classic=ClassicMember(request.session_timeout_ms, protocols),
    )
    return describe_as(turn, group, member_id, metadata)


def _require(group: ConsumerGroup, member_id: str, instance_id: str | None) -> ClassicMember:
    """Return a classic member. Raises OttlaError: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID."""
    require_known(group, member_id, instance_id)
    classic = group.members[member_id].classic
    if classic is None:
        raise OttlaError(
            ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} uses the consumer protocol."
        )
    return classic
