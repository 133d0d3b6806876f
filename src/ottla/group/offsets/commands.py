"""The commands about offsets: committed, asked for, forgotten."""

from collections.abc import Callable, Sequence

from ottla.base.errors import ErrorCode
from ottla.group.consumer.committing import validate_member_epoch
from ottla.group.offsets import committing, deleting, fetching, retention
from ottla.group.registry import Registry
from ottla.group.turn import Call, Decision, Moment, answered
from ottla.wire.messages.offset_commit import OffsetCommitRequest
from ottla.wire.messages.offset_delete import OffsetDeleteRequest
from ottla.wire.messages.txn_offset_commit import TxnOffsetCommitRequest


class OffsetCommands(Registry):
    """Where groups resume."""

    def commit(
        self,
        call: Call,
        request: OffsetCommitRequest,
        check: committing.PartitionCheck,
        at: Moment,
    ) -> Decision:
        """OffsetCommit. A group that only stores offsets comes into being by its first one."""
        turn = self.turn(at)
        if request.group_id in self.share:
            refused = committing.commit_refused(request, ErrorCode.GROUP_ID_NOT_FOUND, check)
            turn.reply(call.ticket, refused)
            return turn.decision
        group = self.any(request.group_id)
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
        turn = self.turn(at)
        if request.group_id in self.share:
            code = ErrorCode.GROUP_ID_NOT_FOUND
            turn.reply(call.ticket, committing.transactional_commit_refused(request, code, exists))
            return turn.decision
        group = self.any(request.group_id)
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
        fetched = fetching.fetch(self.any(group_id), wanted)
        if is_stable and self.pending:
            fetched = fetching.without_pending(fetched, group_id, self.pending)
        return answered(call, build(fetched))

    def check_member(self, group_id: str, member_id: str | None, epoch: int) -> ErrorCode:
        """Whether a caller may fetch offsets of a consumer group (KIP-848).

        An administrator names no member (null) and no epoch (-1). Every other caller must be a
        member in its present epoch; the empty member id is no member's. A null id with an epoch
        is UNKNOWN_MEMBER_ID here; Kafka fails with UNKNOWN_SERVER_ERROR.
        """
        group = self.consumer_groups.get(group_id)
        is_administrator = member_id is None and epoch < 0
        if group is None or is_administrator:
            return ErrorCode.NONE
        return validate_member_epoch(group, member_id or "", epoch)

    def delete_offsets(
        self,
        call: Call,
        request: OffsetDeleteRequest,
        exists: deleting.Exists,
        at: Moment,
    ) -> Decision:
        """OffsetDelete."""
        turn = self.turn(at)
        group = self.any(request.group_id)
        turn.reply(call.ticket, deleting.delete_offsets(turn, group, request, exists))
        return turn.decision

    def expire_offsets(self, at: Moment) -> Decision:
        """Forget what has outlived `offsets.retention.minutes`, and groups nothing is left of."""
        turn = self.turn(at)
        self.sweep()
        for group in self.all():
            retention.expire(turn, group, self.pending)
        return turn.decision

    def forget_topics(self, gone: Callable[[str, int], bool], at: Moment) -> Decision:
        """Forget the offsets of partitions that were deleted."""
        turn = self.turn(at)
        for group in self.all():
            deleting.forget_topic_partitions(turn, group, gone)
        self.share.forget_topics(turn, gone)
        return turn.decision
