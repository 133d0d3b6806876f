"""The commands on offsets: commit, fetch, delete and expire."""

from collections.abc import Callable, Container, Sequence

from ottla.base.errors import ErrorCode
from ottla.group.coordinator.registry import Registry
from ottla.group.model.turn import Call, GroupDecision, Moment, answered
from ottla.group.offsets import commit, stored_offsets
from ottla.group.offsets.commit import validate_member_epoch
from ottla.wire.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetDeleteRequest,
    TxnOffsetCommitRequest,
)


class OffsetCommands:
    """OffsetCommit, OffsetFetch, OffsetDelete, and the expiry of offsets."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    def commit(
        self,
        call: Call,
        request: OffsetCommitRequest,
        check: commit.PartitionCheck,
        at: Moment,
    ) -> GroupDecision:
        """Handle OffsetCommit. A group that only stores offsets is created by the first commit."""
        turn = self._registry.turn(at)
        if request.group_id in self._registry.share:
            refused = commit.commit_refused(request, ErrorCode.GROUP_ID_NOT_FOUND, check)
            turn.reply(call.ticket, refused)
            return turn.decision
        group = self._registry.any(request.group_id)
        turn.reply(call.ticket, commit.commit(turn, group, request, call.version, check))
        return turn.decision

    def commit_in_transaction(
        self,
        call: Call,
        request: TxnOffsetCommitRequest,
        exists: stored_offsets.Exists,
        at: Moment,
    ) -> GroupDecision:
        """Handle TxnOffsetCommit. Its records go to `apply_pending`, and wait for the outcome."""
        turn = self._registry.turn(at)
        if request.group_id in self._registry.share:
            code = ErrorCode.GROUP_ID_NOT_FOUND
            turn.reply(call.ticket, commit.transactional_commit_refused(request, code, exists))
            return turn.decision
        group = self._registry.any(request.group_id)
        answer = commit.commit_in_transaction(turn, group, request, exists)
        turn.reply(call.ticket, answer)
        return turn.decision

    def fetch(
        self,
        call: Call,
        group_id: str,
        wanted: Sequence[stored_offsets.WantedTopic] | None,
        build: Callable[[list[stored_offsets.FetchedTopic]], object],
        *,
        shown: stored_offsets.IsShown = stored_offsets.all_shown,
        is_stable: bool = False,
    ) -> GroupDecision:
        """Handle OffsetFetch for one group; `build` makes the answer.

        The answer has all applied offsets. Like all answers, it is sent once those are committed.
        With `is_stable` it has an error in place of each offset that a transaction may still change
        (KIP-447).
        """
        fetched = stored_offsets.fetch(self._registry.any(group_id), wanted, shown)
        if is_stable and self._registry.pending:
            fetched = stored_offsets.without_pending(fetched, group_id, self._registry.pending)
        return answered(call, build(fetched))

    def check_member(self, group_id: str, member_id: str | None, epoch: int) -> ErrorCode:
        """Whether a caller may fetch offsets of a consumer group (KIP-848).

        An administrator names no member (null) and no epoch (-1). Every other caller must be a
        member in its present epoch; no member has an empty member id. A null id with an epoch
        is UNKNOWN_MEMBER_ID here; Kafka fails with UNKNOWN_SERVER_ERROR.
        """
        group = self._registry.consumer_groups.get(group_id)
        is_administrator = member_id is None and epoch < 0
        if group is None or is_administrator:
            return ErrorCode.NONE
        return validate_member_epoch(group, member_id or "", epoch)

    def delete_offsets(
        self,
        call: Call,
        request: OffsetDeleteRequest,
        exists: stored_offsets.Exists,
        at: Moment,
    ) -> GroupDecision:
        """Handle OffsetDelete."""
        turn = self._registry.turn(at)
        group = self._registry.any(request.group_id)
        turn.reply(call.ticket, stored_offsets.delete_offsets(turn, group, request, exists))
        return turn.decision

    def expire_offsets(self, at: Moment) -> GroupDecision:
        """Delete offsets older than `offsets.retention.minutes`, and empty groups without any."""
        turn = self._registry.turn(at)
        self._registry.sweep()
        for group in self._registry.all():
            stored_offsets.expire(turn, group, self._registry.pending)
        return turn.decision

    def forget_topics(
        self, gone: stored_offsets.IsGone, names: Container[str], at: Moment
    ) -> GroupDecision:
        """Forget committed offsets, and the share groups' state of the topics in `names`."""
        turn = self._registry.turn(at)
        for group in self._registry.all():
            stored_offsets.forget_topic_partitions(turn, group, gone)
        self._registry.share.forget_topics(turn, lambda topic, _partition: topic in names)
        return turn.decision
