"""Groups that change from the classic protocol to the consumer protocol, and back (KIP-848).

An empty group changes at once. A group with members changes while they continue to read, if
`group.consumer.migration.policy` allows it: it is upgraded when the first member of the consumer
protocol joins, and downgraded when the last such member is gone.
"""

from dataclasses import replace

from ottla.base.errors import ErrorCode, OttlaError
from ottla.group.classic.rebalance import (
    answer_waits,
    join_key,
    keep_alive,
    prepare,
    session_key,
    sync_key,
)
from ottla.group.consumer.classic_members import assignment_of, share_in, subscription_of
from ottla.group.consumer.membership import cancel_timers, keep_classic_alive, member_tombstones
from ottla.group.coordinator.registry import Registry
from ottla.group.model.consumer_group import NEW, ConsumerGroup
from ottla.group.model.group import Group, GroupState
from ottla.group.model.turn import Turn, change
from ottla.group.offsets.stored_offsets import write_tombstones
from ottla.group.records.consumer import (
    ClassicMember,
    ConsumerGroupRecord,
    Current,
    CurrentRecord,
    EpochRecord,
    MemberMetadata,
    MemberRecord,
    MemberState,
    TargetEpochRecord,
    TargetRecord,
)
from ottla.group.records.stored import GroupRecord
from ottla.group.values.member import CONSUMER_PROTOCOL_TYPE, Member
from ottla.group.values.notes import CLASSIC, CONSUMER, GroupEvent, Happening
from ottla.group.values.topics import NOTHING, Share

_UPGRADES = ("bidirectional", "upgrade")
_DOWNGRADES = ("bidirectional", "downgrade")


def empty_to_consumer_group(registry: Registry, turn: Turn, group_id: str) -> ConsumerGroup:
    """Create a group of the consumer protocol, or convert an empty classic group to it."""
    classic = registry.groups.get(group_id)
    if classic is not None:
        _forget_waits(turn, classic)
        if classic.stored is not None:
            turn.write(GroupRecord(group_id, None))
    return registry.begin_consumer_group(group_id)


def begin_classic_again(registry: Registry, turn: Turn, group_id: str) -> None:
    """Convert an empty group of the consumer protocol, if there is one, to a classic group."""
    group = registry.consumer_groups.get(group_id)
    if group is not None:
        assert group.is_empty
        write_tombstones(turn, group)
        registry.drop_consumer_group(group)


def upgrade(registry: Registry, turn: Turn, classic: Group) -> ConsumerGroup:
    """Convert a classic group with members to the consumer protocol.

    All members keep their partitions. Raises OttlaError (GROUP_ID_NOT_FOUND) with the reason if
    that is impossible.
    """
    _require_upgradable(turn, classic)
    members = _members_as_consumers(turn, classic)
    _forget_waits(turn, classic)
    if classic.stored is not None:
        turn.write(GroupRecord(classic.group_id, None))
    group = registry.begin_consumer_group(classic.group_id)
    epoch = classic.generation
    group_id = group.group_id
    change(turn, group, EpochRecord(group_id, epoch))
    for member_id, (metadata, share) in members.items():
        current = Current(epoch, epoch, MemberState.STABLE, share, NOTHING)
        change(turn, group, MemberRecord(group_id, member_id, metadata))
        change(turn, group, TargetRecord(group_id, member_id, share))
        change(turn, group, CurrentRecord(group_id, member_id, current))
        keep_classic_alive(turn, group, member_id)
    change(turn, group, TargetEpochRecord(group_id, epoch, turn.timestamp_ms))
    words = "a member of the consumer protocol joins: the group goes on under that"
    _note(turn, group_id, CONSUMER, words)
    return group


def downgrade_if_classic(registry: Registry, turn: Turn, group: ConsumerGroup) -> None:
    """Convert a group to the classic protocol if only classic members are left in it."""
    settings = turn.settings
    if (
        not group.members
        or settings.migration_policy not in _DOWNGRADES
        or len(group.members) > settings.max_size
        or any(metadata.classic is None for metadata in group.members.values())
    ):
        return
    classic = Group(group.group_id)
    for member_id, metadata in group.members.items():
        assert metadata.classic is not None
        share = group.current.get(member_id, NEW).assigned
        classic.add(_member_as_classic(turn, member_id, metadata, metadata.classic, share))
    if not classic.common_protocols():
        return
    classic.protocol_type = CONSUMER_PROTOCOL_TYPE
    classic.protocol_name = classic.select_protocol()
    # The newest epoch that a member knows: members in it are asked to rejoin, not fenced.
    classic.generation = max(group.current.get(each, NEW).epoch for each in group.members)
    _overtake(turn, group)
    for member_id in list(group.members):
        cancel_timers(turn, group, member_id)
        for record in member_tombstones(group, member_id):
            turn.write(record)
    write_tombstones(turn, group)
    classic.offsets = group.offsets
    del registry.consumer_groups[group.group_id]
    registry.groups[group.group_id] = classic
    for member in classic.members.values():
        keep_alive(turn, classic, member)
    # The record has no leader, because the group has no classic generation yet.
    stored = classic.to_stored()
    turn.write(GroupRecord(group.group_id, replace(stored, leader=None)))
    _begin_generation(turn, classic)


def go_on_after_downgrade(turn: Turn, group: Group) -> None:
    """Resume a downgrade after which the log has no generation of the classic protocol yet."""
    if group.stored is not None and group.stored.members and group.stored.leader is None:
        _begin_generation(turn, group)


def _overtake(turn: Turn, group: ConsumerGroup) -> None:
    """Drop the group's records, except tombstones, that this turn has decided so far."""
    turn.decision.records = [
        record
        for record in turn.decision.records
        if not isinstance(record, ConsumerGroupRecord)
        or record.group_id != group.group_id
        or record.is_tombstone
    ]


def _begin_generation(turn: Turn, group: Group) -> None:
    words = "its last member of the consumer protocol is gone: it goes on under the classic one"
    _note(turn, group.group_id, CLASSIC, words)
    group.enter(GroupState.STABLE, turn.timestamp_ms)
    prepare(turn, group)


def _require_upgradable(turn: Turn, classic: Group) -> None:
    policy = turn.settings.migration_policy
    if policy not in _UPGRADES:
        raise _not_upgradable(
            classic, f"group.consumer.migration.policy is {policy}: its members must leave first"
        )
    if not classic.uses_consumer_protocol:
        raise _not_upgradable(classic, f"its members are no consumers but {classic.protocol_type}")
    # There must be room for the joining member, too.
    if len(classic.members) >= turn.settings.consumer_max_size:
        size_max = turn.settings.consumer_max_size
        raise _not_upgradable(
            classic, f"it has as many members as group.consumer.max.size={size_max} allows"
        )


def _not_upgradable(classic: Group, reason: str) -> OttlaError:
    return OttlaError(
        ErrorCode.GROUP_ID_NOT_FOUND,
        f"Group {classic.group_id} is a group of the classic protocol and has members; it cannot "
        f"change to the consumer protocol: {reason}.",
    )


def _members_as_consumers(turn: Turn, classic: Group) -> dict[str, tuple[MemberMetadata, Share]]:
    members = {}
    for member_id, member in classic.members.items():
        try:
            subscription = subscription_of(member.protocols)
            share = share_in(member.assignment, classic.protocol_name, turn.topics)
        except OttlaError as error:
            raise _not_upgradable(classic, error.message) from error
        metadata = MemberMetadata(
            instance_id=member.group_instance_id,
            rack_id=subscription.rack_id,
            client_id=member.client_id,
            client_host=member.client_host,
            topic_names=tuple(sorted(set(subscription.topics))),
            topic_regex=None,
            rebalance_timeout_ms=member.rebalance_timeout_ms,
            server_assignor=None,
            classic=ClassicMember(member.session_timeout_ms, member.protocols),
        )
        members[member_id] = (metadata, share)
    return members


def _member_as_classic(
    turn: Turn, member_id: str, metadata: MemberMetadata, classic: ClassicMember, share: Share
) -> Member:
    return Member(
        member_id=member_id,
        group_instance_id=metadata.instance_id,
        client_id=metadata.client_id,
        client_host=metadata.client_host,
        rebalance_timeout_ms=metadata.rebalance_timeout_ms,
        session_timeout_ms=classic.session_timeout_ms,
        protocols=classic.protocols,
        assignment=assignment_of(share, classic.protocols, turn.topics),
    )


def _forget_waits(turn: Turn, classic: Group) -> None:
    """Answer waiting joins and syncs: the members join again, under the other protocol."""
    turn.timers.cancel(join_key(classic))
    turn.timers.cancel(sync_key(classic))
    for member_id in classic.pending_joins:
        turn.timers.cancel(session_key(classic, member_id))
    for member in classic.members.values():
        answer_waits(turn, member, ErrorCode.REBALANCE_IN_PROGRESS)


def _note(turn: Turn, group_id: str, protocol: str, words: str) -> None:
    setting = f"group.consumer.migration.policy={turn.settings.migration_policy}"
    kind = Happening.PROTOCOL_CHANGED
    turn.note(GroupEvent(group_id, protocol, kind, None, words, setting))
