"""The commands on members, for both protocols of members and of groups."""

from ottla.base.errors import ErrorCode, OttlaError
from ottla.group.classic import join_group
from ottla.group.classic import membership as classic_membership
from ottla.group.classic.rebalance import NO_MEMBER_ID, join_refused, sync_refused
from ottla.group.consumer import classic_members, heartbeats, membership
from ottla.group.coordinator.conversion import (
    begin_classic_again,
    downgrade_if_classic,
    empty_to_consumer_group,
    upgrade,
)
from ottla.group.coordinator.registry import Registry
from ottla.group.model.consumer_group import ConsumerGroup
from ottla.group.model.group import Group
from ottla.group.model.turn import Call, GroupDecision, Moment, Turn
from ottla.group.values.settings import Pace
from ottla.group.values.topics import Sight, sees_all
from ottla.wire.messages.classic_membership import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    LeaveGroupRequest,
    LeaveGroupResponse,
    SyncGroupRequest,
)
from ottla.wire.messages.consumer_groups import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)


class MembershipCommands:
    """JoinGroup, SyncGroup, Heartbeat, LeaveGroup and ConsumerGroupHeartbeat."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    def join(self, call: Call, request: JoinGroupRequest, at: Moment) -> GroupDecision:
        """Handle JoinGroup. Only a caller without a member id creates a group."""
        turn = self._registry.turn(at)
        code = join_group.check_session_timeout(turn, request)
        if code is not ErrorCode.NONE:
            turn.reply(call.ticket, join_refused(code, request.member_id))
            return turn.decision
        if request.group_id in self._registry.share:
            turn.reply(call.ticket, join_refused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL))
            return turn.decision
        consumer_group = self._registry.consumer_groups.get(request.group_id)
        if consumer_group is not None and not consumer_group.is_empty:
            turn.reply(call.ticket, classic_members.join(turn, consumer_group, call, request))
            downgrade_if_classic(self._registry, turn, consumer_group)
            return turn.decision
        begin_classic_again(self._registry, turn, request.group_id)
        group = self._registry.groups.get(request.group_id)
        if group is None:
            if request.member_id != NO_MEMBER_ID:
                code = ErrorCode.UNKNOWN_MEMBER_ID
                turn.reply(call.ticket, join_refused(code, request.member_id))
                return turn.decision
            group = Group(request.group_id)
            self._registry.groups[request.group_id] = group
        join_group.join(turn, group, call, request)
        if group.is_void:
            del self._registry.groups[request.group_id]
        return turn.decision

    def sync(self, call: Call, request: SyncGroupRequest, at: Moment) -> GroupDecision:
        """Handle SyncGroup."""
        turn = self._registry.turn(at)
        group = self._registry.any(request.group_id)
        if group is None:
            turn.reply(call.ticket, sync_refused(ErrorCode.UNKNOWN_MEMBER_ID))
        elif isinstance(group, ConsumerGroup):
            turn.reply(call.ticket, classic_members.sync(turn, group, request))
        else:
            classic_membership.sync(turn, group, call, request)
        return turn.decision

    def heartbeat(self, call: Call, request: HeartbeatRequest, at: Moment) -> GroupDecision:
        """Handle Heartbeat."""
        turn = self._registry.turn(at)
        group = self._registry.any(request.group_id)
        if group is None:
            code = ErrorCode.UNKNOWN_MEMBER_ID
        elif isinstance(group, ConsumerGroup):
            code = classic_members.heartbeat(turn, group, request)
        else:
            code = classic_membership.heartbeat(turn, group, request)
        turn.reply(call.ticket, HeartbeatResponse(error_code=code))
        return turn.decision

    def leave(self, call: Call, request: LeaveGroupRequest, at: Moment) -> GroupDecision:
        """Handle LeaveGroup. Before version 3 the answer has only the error of its one member."""
        turn = self._registry.turn(at)
        group = self._registry.any(request.group_id)
        members = classic_membership.leaving_members(request, call.version)
        if group is None:
            answers = classic_membership.refused(members, ErrorCode.UNKNOWN_MEMBER_ID)
        elif isinstance(group, ConsumerGroup):
            answers = membership.leave(turn, group, members)
            downgrade_if_classic(self._registry, turn, group)
        else:
            answers = classic_membership.leave(turn, group, members)
        if call.version < 3:
            response = LeaveGroupResponse(error_code=answers[0].error_code)
        else:
            response = LeaveGroupResponse(members=answers)
        turn.reply(call.ticket, response)
        return turn.decision

    def consumer_heartbeat(
        self,
        call: Call,
        request: ConsumerGroupHeartbeatRequest,
        pace: Pace,
        at: Moment,
        sight: Sight = sees_all,
    ) -> GroupDecision:
        """Handle ConsumerGroupHeartbeat (KIP-848); `sight` limits which topics a pattern finds."""
        turn = self._registry.turn(at)
        try:
            heartbeats.require_valid(request, call.version, self._registry.settings)
            group = self._consumer_group(turn, request)
            answer = heartbeats.heartbeat(turn, group, call, request, pace, sight)
            if request.member_epoch == heartbeats.LEAVE:
                downgrade_if_classic(self._registry, turn, group)
        except OttlaError as error:
            answer = ConsumerGroupHeartbeatResponse(
                error_code=error.code, error_message=error.message
            )
        turn.reply(call.ticket, answer)
        return turn.decision

    def _consumer_group(self, turn: Turn, request: ConsumerGroupHeartbeatRequest) -> ConsumerGroup:
        """Return the group of a heartbeat; a joining member creates or converts it."""
        group_id = request.group_id
        known = self._registry.consumer_groups.get(group_id)
        if known is not None:
            return known
        if group_id in self._registry.share:
            raise OttlaError(
                ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a consumer group."
            )
        if request.member_epoch != heartbeats.JOIN:
            raise OttlaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Consumer group {group_id} not found.")
        classic = self._registry.groups.get(group_id)
        if classic is None or classic.is_empty:
            return empty_to_consumer_group(self._registry, turn, group_id)
        return upgrade(self._registry, turn, classic)
