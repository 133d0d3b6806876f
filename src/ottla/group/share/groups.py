"""The share groups of one coordinator, and the commands on them.

As in `ottla.group.coordinator`: commands decide, `apply` changes the state. Some answers list state
that the share coordinators have to initialize or delete; a further command records that this was
done.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from uuid import UUID

from ottla.base.errors import ErrorCode, OttlaError
from ottla.group.model.share_group import ShareGroup
from ottla.group.model.turn import Call, GroupDecision, GroupReply, Moment, Turn, change
from ottla.group.records.share import (
    ShareEpochRecord,
    ShareGroupRecord,
    ShareStateRecord,
    ShareTargetEpochRecord,
    TopicState,
)
from ottla.group.share import heartbeats, state_topics
from ottla.group.share.heartbeats import HeartbeatResult
from ottla.group.values.settings import GroupSettings, Pace
from ottla.group.values.timers import TimerKey, Timers
from ottla.group.values.topics import TopicsView
from ottla.wire.messages.consumer_groups import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)


@dataclass(frozen=True, slots=True)
class Allowed:
    """Whether the share state of a group may be changed, and of which topics."""

    code: ErrorCode = ErrorCode.NONE
    topics: tuple[TopicState, ...] = ()
    # The group's epoch; it becomes the state epoch of state that is initialized.
    epoch: int = 0


class ShareGroups:
    """Share groups by id. `is_other` says whether an id belongs to a group of another type."""

    def __init__(
        self, settings: GroupSettings, timers: Timers, is_other: Callable[[str], bool]
    ) -> None:
        self._settings = settings
        self._timers = timers
        self._is_other = is_other
        self.groups: dict[str, ShareGroup] = {}

    def __contains__(self, group_id: str) -> bool:
        return group_id in self.groups

    def heartbeat(
        self,
        call: Call,
        request: ShareGroupHeartbeatRequest,
        topics: TopicsView,
        pace: Pace,
        at: Moment,
    ) -> GroupDecision:
        """Handle ShareGroupHeartbeat; the answer is a HeartbeatResult."""
        turn = self._turn(at)
        try:
            heartbeats.require_valid(request)
            group = self._joined(request)
            result = heartbeats.heartbeat(turn, group, call, request, topics, pace)
        except OttlaError as error:
            result = HeartbeatResult(
                ShareGroupHeartbeatResponse(error_code=error.code, error_message=error.message)
            )
        turn.reply(call.ticket, result)
        return turn.decision

    def begun(self, call: Call, group_id: str) -> GroupDecision:
        """Return the partitions with initialized state; the answer is an Allowed."""
        group = self.groups.get(group_id)
        if group is None:
            allowed = Allowed(ErrorCode.GROUP_ID_NOT_FOUND)
        else:
            allowed = Allowed(topics=tuple(group.begun.values()), epoch=group.epoch)
        return GroupDecision(replies=[GroupReply(call.ticket, allowed)])

    def note_begun(
        self, call: Call, group_id: str, topics: Iterable[TopicState], at: Moment
    ) -> GroupDecision:
        """Record that the state of partitions is initialized; the answer is an ErrorCode."""
        turn = self._turn(at)
        group = self.groups.get(group_id)
        if group is not None:
            state_topics.note_begun(turn, group, topics)
        turn.reply(call.ticket, ErrorCode.NONE)
        return turn.decision

    def start_altering(self, call: Call, group_id: str, at: Moment) -> GroupDecision:
        """First step of AlterShareGroupOffsets: raise the epoch of an empty group, or create it.

        The answer is an Allowed with the state epoch to initialize the state with, and the topics
        whose state is still being deleted.
        """
        turn = self._turn(at)
        group = self.groups.get(group_id)
        if self._is_other(group_id):
            turn.reply(call.ticket, Allowed(ErrorCode.GROUP_ID_NOT_FOUND))
        elif group is not None and not group.is_empty:
            turn.reply(call.ticket, Allowed(ErrorCode.NON_EMPTY_GROUP))
        else:
            if group is None:
                group = self.groups[group_id] = ShareGroup(group_id)
            epoch = group.epoch + 1
            change(turn, group, ShareEpochRecord(group_id, epoch, group.topics_hash))
            turn.reply(call.ticket, Allowed(topics=tuple(group.deleting.values()), epoch=epoch))
        return turn.decision

    def start_deleting(
        self, call: Call, group_id: str, topic_ids: Iterable[UUID] | None, at: Moment
    ) -> GroupDecision:
        """Begin to delete an empty group's state of the topics named; None means all its topics.

        The answer is an Allowed with the topics whose state has to be deleted.
        """
        turn = self._turn(at)
        group = self.groups.get(group_id)
        if group is None:
            turn.reply(call.ticket, Allowed(ErrorCode.GROUP_ID_NOT_FOUND))
        elif not group.is_empty:
            turn.reply(call.ticket, Allowed(ErrorCode.NON_EMPTY_GROUP))
        else:
            chosen = list(group.begun) if topic_ids is None else topic_ids
            turn.reply(
                call.ticket, Allowed(topics=tuple(state_topics.start_deleting(turn, group, chosen)))
            )
        return turn.decision

    def note_deleted(
        self, call: Call, group_id: str, topic_ids: Iterable[UUID], at: Moment
    ) -> GroupDecision:
        """Record that the state of topics is deleted; the answer is an ErrorCode."""
        turn = self._turn(at)
        group = self.groups.get(group_id)
        if group is not None:
            state_topics.note_deleted(turn, group, topic_ids)
        turn.reply(call.ticket, ErrorCode.NONE)
        return turn.decision

    def delete(self, call: Call, group_id: str, at: Moment) -> GroupDecision:
        """Delete a group whose share state is deleted (DeleteGroups); answers an ErrorCode."""
        turn = self._turn(at)
        group = self.groups.get(group_id)
        if group is None:
            code = ErrorCode.GROUP_ID_NOT_FOUND
        elif group.members or group.begun or group.deleting:
            code = ErrorCode.NON_EMPTY_GROUP
        else:
            code = ErrorCode.NONE
            turn.write(ShareStateRecord(group_id, None))
            turn.write(ShareTargetEpochRecord(group_id, None))
            turn.write(ShareEpochRecord(group_id, None))
        turn.reply(call.ticket, code)
        return turn.decision

    def forget_topics(self, turn: Turn, gone: Callable[[str, int], bool]) -> None:
        """Begin to delete the share state of topics that were deleted."""
        for group in self.groups.values():
            topics = [each.id for each in group.begun.values() if gone(each.name, 0)]
            if topics:
                state_topics.start_deleting(turn, group, topics)

    def on_deadline(self, turn: Turn, key: TimerKey) -> None:
        """Remove a member whose session has expired."""
        group = self.groups.get(key.group_id)
        if group is not None and key.member_id in group.members:
            heartbeats.remove(turn, group, key.member_id)

    def start(self, turn: Turn) -> None:
        """Start the sessions of all members, once the group's records are replayed."""
        for group in self.groups.values():
            heartbeats.start(turn, group)

    def apply(self, record: ShareGroupRecord) -> None:
        """Apply a record to the state: when it is appended, or replayed."""
        group = self.groups.get(record.group_id)
        if group is None:
            if record.is_tombstone:
                return
            group = self.groups[record.group_id] = ShareGroup(record.group_id)
        group.apply(record)
        if isinstance(record, ShareEpochRecord) and record.is_tombstone:
            del self.groups[record.group_id]

    def mend(self) -> None:
        """Make all groups consistent again after a loss of records."""
        for group in self.groups.values():
            group.mend()

    def _joined(self, request: ShareGroupHeartbeatRequest) -> ShareGroup:
        """Return the group of a heartbeat; a joining member creates it."""
        group_id = request.group_id
        known = self.groups.get(group_id)
        if known is not None:
            return known
        if self._is_other(group_id):
            raise OttlaError(
                ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a share group."
            )
        if request.member_epoch != heartbeats.JOIN:
            raise OttlaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Share group {group_id} not found.")
        group = self.groups[group_id] = ShareGroup(group_id)
        return group

    def _turn(self, at: Moment) -> Turn:
        return Turn(self._settings, self._timers, at)
