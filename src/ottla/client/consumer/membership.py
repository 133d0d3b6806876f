"""One member of a classic group: joins, sends heartbeats, leaves (KIP-62, KIP-345).

Joining happens only inside the consumer's own calls, so that records returned before are known
to be processed when partitions are revoked. Heartbeats are also sent between these calls.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import TopicPartition
from ottla.client.assignors import assignor_named
from ottla.client.assignors.subscriptions import (
    PROTOCOL_TYPE,
    Assignment,
    Assignor,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from ottla.client.common.errors import (
    ClientError,
    ConnectionFailed,
    RequestTimedOut,
    UnknownTopic,
    code_of,
)
from ottla.client.connection.coordinator import LOST, MOVED, Coordinator, group_error
from ottla.client.consumer.options import ConsumerOptions
from ottla.wire.api import ApiKey
from ottla.wire.messages.classic_membership import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)

_logger = logging.getLogger(__name__)

NO_GENERATION = -1
# Consecutive refusals before a warning: this takes some seconds, as the pauses grow.
_WARNED_AT = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebalancing:
    """The consumer's callbacks for the steps of a rebalance. All but `wake` are asynchronous."""

    topics: Callable[[], Awaitable[list[str]]]
    # Revokes partitions; processed records may still be committed.
    revoke: Callable[[set[TopicPartition]], Awaitable[None]]
    # Reports lost partitions: other members may read them already.
    lose: Callable[[set[TopicPartition]], Awaitable[None]]
    # Called with all owned partitions, and the new ones among them.
    assign: Callable[[set[TopicPartition], set[TopicPartition]], Awaitable[None]]
    # Wakes the consumer, which has something to do.
    wake: Callable[[], None]


class Membership:
    """The state of one member. Invariant: `owned` is what the consumer reads for the group."""

    def __init__(
        self, coordinator: Coordinator, options: ConsumerOptions, rebalancing: Rebalancing
    ) -> None:
        self.member_id = ""
        self.generation = NO_GENERATION
        self.owned: set[TopicPartition] = set()
        self.needs_join = True
        # True from before the revocation until the new assignment.
        self._is_joining = False
        self.failure: OttlaError | None = None
        # Consecutive answers without a ready coordinator.
        self._refusals = 0
        # In the time of the loop; set before it is read.
        self.last_poll_s = 0.0
        self._coordinator = coordinator
        self._options = options
        strategy = options["partition_assignment_strategy"]
        if not strategy:
            raise ClientError(
                ErrorCode.INVALID_CONFIG,
                "give at least one assignor as partition_assignment_strategy",
            )
        self._assignors = [assignor_named(name) for name in strategy]
        self._instance_id = options["group_instance_id"]
        self._rebalancing = rebalancing
        self._assignor: Assignor | None = None
        self._heartbeats: asyncio.Task[None] | None = None
        self._topics: list[str] = []
        self._partition_counts: dict[str, int] = {}
        self._is_leader = False
        # Passed to sticky assignors; kept while partitions are revoked for a rebalance.
        self._last_assigned: frozenset[TopicPartition] = frozenset()
        self._last_generation = NO_GENERATION

    # -- joining

    async def join(self) -> None:
        """Rebalance until this member has its assignment. Raises permanent errors."""
        attempt = 0
        while self.needs_join:
            self.last_poll_s = asyncio.get_running_loop().time()
            try:
                await self._rebalance()
                attempt = 0
            except (ConnectionFailed, RequestTimedOut):
                self._coordinator.moved()
                await self._coordinator.cluster.pause(attempt)
                attempt += 1

    async def _rebalance(self) -> None:
        self.needs_join = False
        self._is_joining = True
        try:
            await self._give_up_before_joining()
            self._topics = await self._rebalancing.topics()
            joined = await self._send_join()
            if joined is None:
                self.needs_join = True
                return
            assigned = await self._send_sync(joined)
            if assigned is None:
                self.needs_join = True
                return
        except BaseException:
            self.needs_join = True
            raise
        finally:
            self._is_joining = False
        self._refusals = 0
        await self._take_over(assigned)
        if self._heartbeats is None:
            self._heartbeats = asyncio.ensure_future(self._beat())

    async def _give_up_before_joining(self) -> None:
        if not self.owned:
            return
        gone = self.owned
        if self.generation == NO_GENERATION:
            self.owned = set()
            await self._rebalancing.lose(gone)
        elif self._assignor is None or not self._assignor.is_cooperative:
            await self._rebalancing.revoke(gone)
            self.owned = set()

    async def _send_join(self) -> JoinGroupResponse | None:
        """Send one JoinGroup; return None if it must be retried."""
        options = self._options
        owned = sorted(self.owned)
        # An eager member has revoked its partitions by now, but may name them.
        request = JoinGroupRequest(
            group_id=self._coordinator.group_id,
            session_timeout_ms=options["session_timeout_ms"],
            rebalance_timeout_ms=options["max_poll_interval_ms"],
            member_id=self.member_id,
            group_instance_id=self._instance_id,
            protocol_type=PROTOCOL_TYPE,
            protocols=[
                JoinGroupRequestProtocol(
                    name=assignor.name,
                    metadata=encode_subscription(
                        self._topics,
                        assignor.user_data(sorted(self._last_assigned), self._last_generation),
                        owned if assignor.is_cooperative else (),
                        self._last_generation if assignor.is_cooperative else NO_GENERATION,
                    ),
                )
                for assignor in self._assignors
            ],
        )
        timeout_s = options["max_poll_interval_ms"] / 1000 + 5
        answer = await self._coordinator.ask(request, JoinGroupResponse, timeout_s, rebalances=True)
        code = code_of(answer.error_code)
        if code is ErrorCode.NONE:
            self.member_id = answer.member_id
            self.generation = answer.generation_id
            return answer
        if code is ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = answer.member_id
        else:
            await self._on_refusal(code, "let it join")
        return None

    async def _send_sync(self, joined: JoinGroupResponse) -> tuple[TopicPartition, ...] | None:
        """Send one SyncGroup, with all assignments if this member is the leader.

        Returns None if it must be retried.
        """
        self._assignor = next(one for one in self._assignors if one.name == joined.protocol_name)
        self._is_leader = joined.leader == joined.member_id
        assignment: Assignment = {}
        if self._is_leader and not joined.skip_assignment:
            assignment = await self._assign(joined, self._assignor)
        request = SyncGroupRequest(
            group_id=self._coordinator.group_id,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=self._instance_id,
            protocol_type=PROTOCOL_TYPE,
            protocol_name=joined.protocol_name,
            assignments=[
                SyncGroupRequestAssignment(
                    member_id=member_id, assignment=encode_assignment(partitions)
                )
                for member_id, partitions in assignment.items()
            ],
        )
        timeout_s = self._options["max_poll_interval_ms"] / 1000 + 5
        answer = await self._coordinator.ask(request, SyncGroupResponse, timeout_s, rebalances=True)
        code = code_of(answer.error_code)
        if code is ErrorCode.NONE:
            return decode_assignment(answer.assignment)
        await self._on_refusal(code, "hand out partitions")
        return None

    async def _assign(self, joined: JoinGroupResponse, assignor: Assignor) -> Assignment:
        members = {
            member.member_id: decode_subscription(member.metadata, member.group_instance_id)
            for member in joined.members
        }
        topics = sorted({topic for member in members.values() for topic in member.topics})
        self._partition_counts = await self._counts(topics)
        return assignor.assign(self._partition_counts, members)

    async def _counts(self, topics: Iterable[str]) -> dict[str, int]:
        counts: dict[str, int] = {}
        cluster = self._coordinator.cluster
        cluster.want(topics)
        await cluster.refresh()
        for topic in topics:
            try:
                counts[topic] = len((await cluster.topic(topic)).partitions)
            except UnknownTopic:
                # The topic does not exist yet; a later refresh finds it.
                cluster.want([topic])
        return counts

    async def _take_over(self, assigned: tuple[TopicPartition, ...]) -> None:
        owned = set(assigned)
        gone = self.owned - owned
        new = owned - self.owned
        if gone:
            # Cooperative: first revoke these partitions. Other members get them in the next
            # generation (KIP-429).
            self.needs_join = True
            await self._rebalancing.revoke(gone)
        self.owned = owned
        self._last_assigned = frozenset(owned)
        self._last_generation = self.generation
        try:
            await self._rebalancing.assign(owned, new)
        except BaseException:
            # The start positions are unknown, so the new partitions are assigned again.
            self.owned = owned - new
            self.needs_join = True
            raise

    async def _on_refusal(self, code: ErrorCode, doing: str) -> None:
        """Prepare the next attempt, or raise."""
        if code in MOVED:
            self._coordinator.moved()
            self._refusals += 1
            if self._refusals == _WARNED_AT:
                _logger.warning(
                    "group %r does not %s yet: the coordinator answers %s, and is asked again;"
                    " `ottla cluster health` says whether a broker or its disk is in trouble",
                    self._coordinator.group_id,
                    doing,
                    code.name,
                )
            await self._coordinator.cluster.pause(self._refusals)
            return
        if code is ErrorCode.FENCED_INSTANCE_ID:
            raise group_error(code, self._coordinator.group_id, doing)
        if code in LOST:
            self._forget_place()
        elif code is not ErrorCode.REBALANCE_IN_PROGRESS and not code.retriable:
            raise group_error(code, self._coordinator.group_id, doing)
        await self._coordinator.cluster.pause(0)

    def _forget_place(self) -> None:
        self.member_id = ""
        self.generation = NO_GENERATION
        self.needs_join = True

    # -- heartbeats

    async def _beat(self) -> None:
        interval_s = self._options["heartbeat_interval_ms"] / 1000
        while self.failure is None:
            await asyncio.sleep(interval_s)
            if self.needs_join or self.generation == NO_GENERATION:
                continue
            idle_s = asyncio.get_running_loop().time() - self.last_poll_s
            if idle_s * 1000 > self._options["max_poll_interval_ms"]:
                # Processing takes too long: leave, so that other members get the partitions
                # (KIP-62).
                await self.leave()
                self._forget_place()
                self._rebalancing.wake()
                continue
            try:
                await self._beat_once()
                if not self._is_joining:
                    await self._look_for_changes()
            except (ConnectionFailed, RequestTimedOut):
                self._coordinator.moved()
            except OttlaError as error:
                self.failure = error
                self._rebalancing.wake()

    async def _beat_once(self) -> None:
        generation = self.generation
        answer = await self._coordinator.ask(
            HeartbeatRequest(
                group_id=self._coordinator.group_id,
                generation_id=generation,
                member_id=self.member_id,
                group_instance_id=self._instance_id,
            ),
            HeartbeatResponse,
            self._options["session_timeout_ms"] / 1000,
        )
        code = code_of(answer.error_code)
        if code is ErrorCode.NONE or generation != self.generation:
            return
        if code is ErrorCode.REBALANCE_IN_PROGRESS:
            self.needs_join = self.needs_join or not self._is_joining
        elif code in MOVED:
            self._coordinator.moved()
        elif code is ErrorCode.FENCED_INSTANCE_ID:
            self.failure = group_error(code, self._coordinator.group_id, "keep it as a member")
        elif code in LOST:
            self._forget_place()
        elif not code.retriable:
            self.failure = group_error(code, self._coordinator.group_id, "keep it as a member")
        self._rebalancing.wake()

    async def _look_for_changes(self) -> None:
        """Rejoin if the member's topics changed or, as leader, if their partition counts did."""
        cluster = self._coordinator.cluster
        if not cluster.is_stale:
            return
        await cluster.refresh()
        if await self._rebalancing.topics() != self._topics:
            self.needs_join = True
        elif self._is_leader and self._partition_counts:
            known: Mapping[str, int] = {
                topic: len(view.partitions) for topic, view in cluster.view.topics.items()
            }
            changed = any(
                known.get(topic, count) != count for topic, count in self._partition_counts.items()
            )
            self.needs_join = self.needs_join or changed
        if self.needs_join:
            self._rebalancing.wake()

    # -- leaving

    async def leave(self) -> None:
        """Leave the group, so that other members need not wait for the session to expire.

        A static member does not leave: it may come back under its instance id.
        """
        if self._instance_id is not None or not self.member_id:
            return
        request = LeaveGroupRequest(group_id=self._coordinator.group_id)
        try:
            if await self._coordinator.version(ApiKey.LEAVE_GROUP) < 3:
                request.member_id = self.member_id
            else:
                reason = "the consumer is closing"
                request.members = [MemberIdentity(member_id=self.member_id, reason=reason)]
            await self._coordinator.ask(request, LeaveGroupResponse, 5.0)
        except OttlaError:
            # The session will expire by itself.
            return

    async def close(self) -> None:
        """Stop heartbeats and leave."""
        if self._heartbeats is not None:
            self._heartbeats.cancel()
            await asyncio.gather(self._heartbeats, return_exceptions=True)
            self._heartbeats = None
        await self.leave()
        self.generation = NO_GENERATION
        self.member_id = ""
