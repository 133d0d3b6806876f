"""The coordinator of the groups in one partition of `__consumer_offsets`.

Commands decide: they return the records to append and the answers to give once these are
committed. `apply` is the only thing that changes what must survive, so replaying the partition
rebuilds it. Who waits in a join and whose session ends when is soft state: commands change it at
once, and a coordinator whose append failed is thrown away and replayed.
It does no I/O, knows no clock, and never waits.
"""

from collections.abc import Callable, Iterator, Sequence

from ottla.base.errors import ErrorCode, OttlaError
from ottla.group import (
    committing,
    deleting,
    describing,
    fetching,
    joining,
    leaving,
    liveness,
    retention,
    syncing,
)
from ottla.group.answers import NO_MEMBER_ID, join_refused, sync_refused
from ottla.group.causes import note_too_many
from ottla.group.consumer import describing as consumer_describing
from ottla.group.consumer import heartbeating, requests
from ottla.group.consumer import leaving as consumer_leaving
from ottla.group.consumer.committing import validate_member_epoch
from ottla.group.consumer.group import ConsumerGroup
from ottla.group.consumer.pace import Pace
from ottla.group.consumer.records import ConsumerGroupRecord, EpochRecord
from ottla.group.consumer.topics import Topics
from ottla.group.group import AnyGroup, Group
from ottla.group.member import Ticket
from ottla.group.pending import PendingOffsets
from ottla.group.rebalance import keep_alive, prepare
from ottla.group.records import CoordinatorRecord, GroupRecord, OffsetRecord
from ottla.group.settings import GroupSettings
from ottla.group.timers import Timers
from ottla.group.turn import Call, Decision, Moment, Reply, Turn
from ottla.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from ottla.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from ottla.wire.messages.join_group import JoinGroupRequest
from ottla.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from ottla.wire.messages.list_groups import ListedGroup
from ottla.wire.messages.offset_commit import OffsetCommitRequest
from ottla.wire.messages.offset_delete import OffsetDeleteRequest
from ottla.wire.messages.sync_group import SyncGroupRequest
from ottla.wire.messages.txn_offset_commit import TxnOffsetCommitRequest


class Coordinator:
    """Groups by id, their deadlines, and the commands on them."""

    def __init__(self, settings: GroupSettings) -> None:
        self._settings = settings
        self._timers = Timers()
        # Those of the classic protocol, and those of the consumer protocol.
        # Invariant: an id is in one of the two at most.
        self.groups: dict[str, Group] = {}
        self.consumer_groups: dict[str, ConsumerGroup] = {}
        self.pending = PendingOffsets()

    def next_deadline_ms(self) -> int | None:
        """When `on_deadline` wants to be called next (monotonic), None if nothing is due."""
        return self._timers.next_deadline_ms()

    def on_deadline(self, at: Moment) -> Decision:
        """Act on the earliest deadline that has passed, if any; call again until none is due."""
        turn = self._turn(at)
        key = self._timers.pop_due(at.now_ms)
        if key is not None:
            group = self._any(key.group_id)
            if isinstance(group, ConsumerGroup):
                heartbeating.on_deadline(turn, group, key)
            elif group is not None:
                liveness.on_deadline(turn, group, key)
        return turn.decision

    def join(self, call: Call, request: JoinGroupRequest, at: Moment) -> Decision:
        """JoinGroup. Only a caller without a member id brings a group into being."""
        turn = self._turn(at)
        code = joining.check_session_timeout(turn, request)
        if code is not ErrorCode.NONE:
            turn.reply(call.ticket, join_refused(code, request.member_id))
            return turn.decision
        if not self._make_classic(turn, request.group_id):
            code = ErrorCode.INCONSISTENT_GROUP_PROTOCOL
            turn.reply(call.ticket, join_refused(code, request.member_id))
            return turn.decision
        group = self.groups.get(request.group_id)
        if group is None:
            if request.member_id != NO_MEMBER_ID:
                code = ErrorCode.UNKNOWN_MEMBER_ID
                turn.reply(call.ticket, join_refused(code, request.member_id))
                return turn.decision
            group = Group(request.group_id)
            self.groups[request.group_id] = group
        joining.join(turn, group, call, request)
        if group.is_void:
            del self.groups[request.group_id]
        return turn.decision

    def sync(self, call: Call, request: SyncGroupRequest, at: Moment) -> Decision:
        """SyncGroup."""
        turn = self._turn(at)
        group = self.groups.get(request.group_id)
        if group is None:
            turn.reply(call.ticket, sync_refused(ErrorCode.UNKNOWN_MEMBER_ID))
        else:
            syncing.sync(turn, group, call, request)
        return turn.decision

    def heartbeat(self, call: Call, request: HeartbeatRequest, at: Moment) -> Decision:
        """Heartbeat."""
        turn = self._turn(at)
        group = self.groups.get(request.group_id)
        code = (
            ErrorCode.UNKNOWN_MEMBER_ID
            if group is None
            else liveness.heartbeat(turn, group, request)
        )
        turn.reply(call.ticket, HeartbeatResponse(error_code=code))
        return turn.decision

    def leave(self, call: Call, request: LeaveGroupRequest, at: Moment) -> Decision:
        """LeaveGroup; before version 3 the one member's error is the whole answer's."""
        turn = self._turn(at)
        group = self._any(request.group_id)
        members = leaving.leaving_members(request, call.version)
        if group is None:
            answers = leaving.refused(members, ErrorCode.UNKNOWN_MEMBER_ID)
        elif isinstance(group, ConsumerGroup):
            answers = consumer_leaving.leave(turn, group, members)
        else:
            answers = leaving.leave(turn, group, members)
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
        topics: Topics,
        pace: Pace,
        at: Moment,
    ) -> Decision:
        """ConsumerGroupHeartbeat (KIP-848)."""
        turn = self._turn(at)
        try:
            requests.require_valid(request, call.version, self._settings)
            group = self._consumer_group(turn, request)
            answer = heartbeating.heartbeat(turn, group, call, request, topics, pace)
        except OttlaError as error:
            answer = ConsumerGroupHeartbeatResponse(
                error_code=error.code, error_message=error.message
            )
        turn.reply(call.ticket, answer)
        return turn.decision

    def describe_consumer_group(self, call: Call, group_id: str, topics: Topics) -> Decision:
        """ConsumerGroupDescribe for one group; the answer is its DescribedGroup."""
        group = self.consumer_groups.get(group_id)
        if group is None:
            is_classic = group_id in self.groups
            return _answer(call, consumer_describing.not_found(group_id, is_classic=is_classic))
        assignors = self._settings.consumer_assignors
        return _answer(call, consumer_describing.describe(group, topics, assignors))

    def commit(
        self,
        call: Call,
        request: OffsetCommitRequest,
        check: committing.PartitionCheck,
        at: Moment,
    ) -> Decision:
        """OffsetCommit. A group that only stores offsets comes into being by its first one."""
        turn = self._turn(at)
        group = self._any(request.group_id)
        turn.reply(call.ticket, committing.commit(turn, group, request, call.version, check))
        return turn.decision

    def commit_in_transaction(
        self,
        call: Call,
        request: TxnOffsetCommitRequest,
        exists: deleting.Exists,
        at: Moment,
    ) -> Decision:
        """TxnOffsetCommit. Its records are for `apply_pending`, and wait for the outcome."""
        turn = self._turn(at)
        group = self._any(request.group_id)
        answer = committing.commit_in_transaction(turn, group, request, exists)
        turn.reply(call.ticket, answer)
        return turn.decision

    def fetch(
        self,
        call: Call,
        group_id: str,
        wanted: Sequence[fetching.WantedTopic] | None,
        build: Callable[[list[fetching.FetchedTopic]], object],
        *,
        is_stable: bool = False,
    ) -> Decision:
        """OffsetFetch for one group; `build` makes the answer.

        It tells of everything applied, and like all answers is given when that is committed. With
        `is_stable` it tells nothing of what the outcome of a transaction may change (KIP-447).
        """
        fetched = fetching.fetch(self._any(group_id), wanted)
        if is_stable and self.pending:
            fetched = fetching.without_pending(fetched, group_id, self.pending)
        return _answer(call, build(fetched))

    def check_member(self, group_id: str, member_id: str | None, epoch: int) -> ErrorCode:
        """Whether who asks for offsets as a member of the consumer protocol is one (KIP-848)."""
        group = self.consumer_groups.get(group_id)
        if not member_id or epoch < 0 or group is None:
            return ErrorCode.NONE
        return validate_member_epoch(group, member_id, epoch)

    def describe(self, call: Call, group_id: str) -> Decision:
        """DescribeGroups for one group; the answer is a DescribedGroup."""
        return _answer(call, describing.describe(group_id, self.groups.get(group_id), call.version))

    def list_groups(self, states: Sequence[str], types: Sequence[str]) -> list[ListedGroup]:
        """ListGroups, with the filters of its request."""
        return [
            describing.listed(group)
            for group in self.all()
            if describing.is_listed(group, states, types)
        ]

    def delete(self, call: Call, group_id: str, at: Moment) -> Decision:
        """DeleteGroups for one group; the answer is an ErrorCode."""
        turn = self._turn(at)
        group = self._any(group_id)
        turn.reply(call.ticket, deleting.delete_group(turn, group, self.pending))
        return turn.decision

    def delete_offsets(
        self,
        call: Call,
        request: OffsetDeleteRequest,
        exists: deleting.Exists,
        at: Moment,
    ) -> Decision:
        """OffsetDelete."""
        turn = self._turn(at)
        group = self._any(request.group_id)
        turn.reply(call.ticket, deleting.delete_offsets(turn, group, request, exists))
        return turn.decision

    def expire_offsets(self, at: Moment) -> Decision:
        """Forget what has outlived `offsets.retention.minutes`, and groups nothing is left of."""
        turn = self._turn(at)
        self._sweep()
        for group in self.all():
            retention.expire(turn, group, self.pending)
        return turn.decision

    def forget_topics(self, gone: Callable[[str, int], bool], at: Moment) -> Decision:
        """Forget the offsets of partitions that were deleted."""
        turn = self._turn(at)
        for group in self.all():
            deleting.forget_topic_partitions(turn, group, gone)
        return turn.decision

    def apply(self, record: CoordinatorRecord) -> None:
        """Make a record part of the state: at its append, or when the partition is replayed."""
        match record:
            case OffsetRecord(group_id, topic_partition, committed):
                if self.pending:
                    self.pending.overtake(group_id, topic_partition)
                holder = self._any(group_id)
                if committed is not None:
                    if holder is None:
                        holder = self.groups[group_id] = Group(group_id)
                    holder.offsets[topic_partition] = committed
                elif holder is not None:
                    holder.offsets.pop(topic_partition, None)
            case GroupRecord(group_id, stored):
                group = self.groups.get(group_id)
                if stored is not None:
                    if group is None:
                        group = self.groups[group_id] = Group(group_id)
                    group.adopt(stored)
                elif group is not None:
                    self._drop(group)
            case _:
                self._apply_to_consumer_group(record)

    def apply_pending(self, producer_id: int, record: CoordinatorRecord) -> None:
        """Take in a record of a transaction, which counts once that is committed."""
        assert isinstance(record, OffsetRecord), "only offsets are committed in transactions"
        self.pending.add(producer_id, record)

    def end_transaction(self, producer_id: int, *, is_commit: bool) -> None:
        """A marker stands in the partition: what the producer has pending counts, or is gone."""
        for record in self.pending.end(producer_id, is_commit=is_commit):
            group = self._any(record.group_id)
            if group is None:
                group = self.groups[record.group_id] = Group(record.group_id)
            assert record.committed is not None
            group.offsets[record.topic_partition] = record.committed

    def start(self, at: Moment) -> Decision:
        """Everything is replayed: sessions of the members found start now (KIP-62 keeps them)."""
        turn = self._turn(at)
        self._sweep()
        for group in self.groups.values():
            for member in group.members.values():
                keep_alive(turn, group, member)
            if len(group.members) > self._settings.max_size:
                note_too_many(turn, group)
                prepare(turn, group)
        for consumer_group in self.consumer_groups.values():
            heartbeating.start(turn, consumer_group)
        return turn.decision

    def waiting(self) -> list[Ticket]:
        """Whoever waits in a join or a sync: to be told when this coordinator is given up."""
        return [
            ticket
            for group in self.groups.values()
            for member in group.members.values()
            for ticket in (member.joining, member.syncing)
            if ticket is not None
        ]

    def _sweep(self) -> None:
        """Let go of groups that nobody ever wrote anything about."""
        for group_id in [group_id for group_id, group in self.groups.items() if group.is_void]:
            del self.groups[group_id]

    def _any(self, group_id: str) -> AnyGroup | None:
        return self.groups.get(group_id) or self.consumer_groups.get(group_id)

    def all(self) -> Iterator[AnyGroup]:
        """Every group, of either protocol."""
        yield from self.groups.values()
        yield from self.consumer_groups.values()

    def _consumer_group(self, turn: Turn, request: ConsumerGroupHeartbeatRequest) -> ConsumerGroup:
        """The group a member speaks of. Who joins brings it into being, or turns an empty one."""
        group_id = request.group_id
        known = self.consumer_groups.get(group_id)
        if known is not None:
            return known
        if request.member_epoch != requests.JOIN:
            raise OttlaError(
                ErrorCode.UNKNOWN_MEMBER_ID, f"There is no consumer group {group_id}; rejoin."
            )
        classic = self.groups.get(group_id)
        if classic is not None and not classic.is_empty:
            raise OttlaError(
                ErrorCode.GROUP_ID_NOT_FOUND,
                f"Group {group_id} is a group of the classic protocol and has members; they must "
                "leave before it can change to the consumer protocol.",
            )
        if classic is not None and classic.stored is not None:
            turn.write(GroupRecord(group_id, None))
        return self._begin_consumer_group(group_id)

    def _begin_consumer_group(self, group_id: str) -> ConsumerGroup:
        """A group of the consumer protocol, with the offsets that are there already."""
        group = self.consumer_groups[group_id] = ConsumerGroup(group_id)
        classic = self.groups.pop(group_id, None)
        if classic is not None:
            group.offsets = classic.offsets
        return group

    def _make_classic(self, turn: Turn, group_id: str) -> bool:
        """Turn an empty consumer group into a classic one; False where it has members."""
        group = self.consumer_groups.get(group_id)
        if group is None:
            return True
        if not group.is_empty:
            return False
        deleting.write_tombstones(turn, group)
        self._drop_consumer_group(group)
        return True

    def _apply_to_consumer_group(self, record: ConsumerGroupRecord) -> None:
        group = self.consumer_groups.get(record.group_id)
        if group is None:
            if record.is_tombstone:
                return
            group = self._begin_consumer_group(record.group_id)
        group.apply(record)
        if isinstance(record, EpochRecord) and record.is_tombstone:
            self._drop_consumer_group(group)

    def _drop_consumer_group(self, group: ConsumerGroup) -> None:
        del self.consumer_groups[group.group_id]
        self._keep_offsets(group)

    def _drop(self, group: Group) -> None:
        del self.groups[group.group_id]
        self._keep_offsets(group)

    def _keep_offsets(self, group: AnyGroup) -> None:
        """The group is deleted. Offsets that outlive it (the topic is compacted) stay readable."""
        if group.offsets:
            rest = self.groups[group.group_id] = Group(group.group_id)
            rest.offsets = group.offsets

    def _turn(self, at: Moment) -> Turn:
        return Turn(self._settings, self._timers, at)


def _answer(call: Call, message: object) -> Decision:
    return Decision(replies=[Reply(call.ticket, message)])
