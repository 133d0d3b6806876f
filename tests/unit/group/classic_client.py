"""A consumer of the classic protocol, as clients behave: eager, or cooperative (KIP-429)."""

from collections.abc import Iterable
from typing import Any

from ottla.base.errors import ErrorCode
from ottla.group.coordinator.membership_commands import MembershipCommands
from ottla.group.model.turn import Call
from ottla.wire.messages.classic_membership import (
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
    LeaveGroupRequest,
    MemberIdentity,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
)
from ottla.wire.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from ottla.wire.stored import (
    AssignmentTopicPartition,
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    SubscriptionTopicPartition,
    decode_versioned,
    encode_versioned,
)
from tests.unit.group.consumer_driver import GROUP, Cluster

Places = frozenset[tuple[str, int]]
NOTHING: Places = frozenset()


class Classic:
    """Reads all of `topics`. `step` does one thing: asks, hears an answer, or reports."""

    def __init__(
        self,
        cluster: Cluster,
        name: str,
        topics: Iterable[str] = ("t",),
        *,
        is_cooperative: bool = False,
        instance_id: str | None = None,
        assignor: str | None = None,
        user_data: bytes | None = None,
    ) -> None:
        self.cluster = cluster
        self.name = name
        self.topics = list(topics)
        self.is_cooperative = is_cooperative
        self.instance_id = instance_id
        # What it writes into assignments where it leads.
        self.user_data = user_data
        self.assignor = assignor or ("cooperative" if is_cooperative else "eager")
        self.member_id = ""
        self.generation = -1
        self.owned: Places = NOTHING
        self.codes: list[ErrorCode] = []
        self._must_join = True
        self._ticket: tuple[str, int] | None = None
        self._asked = 0
        self._joined: JoinGroupResponse | None = None

    @property
    def is_settled(self) -> bool:
        return not self._must_join and self._ticket is None and self._joined is None

    def step(self) -> None:
        if self._ticket is not None:
            answer = self.cluster.answers.pop(self._ticket, None)
            if answer is not None:
                kind, self._ticket = self._ticket[0], None
                if kind.endswith("join"):
                    self._on_join(answer)
                else:
                    self._on_sync(answer)
        elif self._joined is not None:
            self._sync()
        elif self._must_join:
            self._join()
        else:
            self._beat()

    def forget_answer(self) -> None:
        """The coordinator it waited for is gone: it asks again."""
        if self._ticket is not None and self._ticket not in self.cluster.answers:
            self._must_join = True
            self._ticket = None

    def leave(self) -> None:
        request = LeaveGroupRequest(
            group_id=GROUP, members=[MemberIdentity(member_id=self.member_id)]
        )
        self._at_once(self._members.leave(self._call("leave"), request, self.cluster.at))
        self._lose(ErrorCode.NONE)

    def commit(self, offset: int) -> ErrorCode:
        request = OffsetCommitRequest(
            group_id=GROUP,
            generation_id_or_member_epoch=self.generation,
            member_id=self.member_id,
            topics=[
                OffsetCommitRequestTopic(
                    name="t",
                    partitions=[
                        OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
                    ],
                )
            ],
        )
        decision = self.cluster.coordinator.offsets.commit(
            self._call("commit", 8), request, lambda _topic, _index: ErrorCode.NONE, self.cluster.at
        )
        return ErrorCode(self._at_once(decision).topics[0].partitions[0].error_code)

    def _join(self) -> None:
        if not self.is_cooperative:
            self.owned = NOTHING
        subscription = ConsumerProtocolSubscription(
            topics=self.topics,
            owned_partitions=[
                SubscriptionTopicPartition(topic=topic, partitions=[index])
                for topic, index in sorted(self.owned)
            ],
            generation_id=self.generation,
        )
        request = JoinGroupRequest(
            group_id=GROUP,
            session_timeout_ms=30_000,
            rebalance_timeout_ms=60_000,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            protocol_type="consumer",
            protocols=[
                JoinGroupRequestProtocol(
                    name=self.assignor, metadata=encode_versioned(subscription, 3)
                )
            ],
        )
        call = self._call("join")
        self._ticket = call.ticket
        self.cluster.carry_out(self._members.join(call, request, self.cluster.at))

    def _on_join(self, answer: JoinGroupResponse) -> None:
        code = ErrorCode(answer.error_code)
        if code is ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = answer.member_id
        elif code is ErrorCode.NONE:
            self._must_join = False
            self.member_id = answer.member_id
            self.generation = answer.generation_id
            self._joined = answer
        elif code is not ErrorCode.REBALANCE_IN_PROGRESS:
            self._lose(code)

    def _sync(self) -> None:
        assert self._joined is not None
        leads = self._joined.leader == self.member_id
        request = SyncGroupRequest(
            group_id=GROUP,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            protocol_type="consumer",
            protocol_name=self._joined.protocol_name,
            assignments=self._shared_out(self._joined) if leads else [],
        )
        self._joined = None
        call = self._call("sync")
        self._ticket = call.ticket
        self.cluster.carry_out(self._members.sync(call, request, self.cluster.at))

    def _on_sync(self, answer: Any) -> None:
        code = ErrorCode(answer.error_code)
        if code is ErrorCode.REBALANCE_IN_PROGRESS:
            self._must_join = True
        elif code is not ErrorCode.NONE:
            self._lose(code)
        else:
            assigned = _read(answer.assignment)
            # A cooperative one that gave something up asks at once for a new rebalance.
            self._must_join = self.is_cooperative and not self.owned <= assigned
            self.owned = assigned

    def _beat(self) -> None:
        request = HeartbeatRequest(
            group_id=GROUP,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
        )
        decision = self._members.heartbeat(self._call("beat"), request, self.cluster.at)
        code = ErrorCode(self._at_once(decision).error_code)
        if code is ErrorCode.REBALANCE_IN_PROGRESS:
            self._must_join = True
        elif code is not ErrorCode.NONE:
            self._lose(code)

    def _lose(self, code: ErrorCode) -> None:
        self.codes.append(code)
        self.owned = NOTHING
        self.generation = -1
        self._must_join = True
        self._joined = None
        if code is not ErrorCode.ILLEGAL_GENERATION:
            self.member_id = ""

    def _shared_out(self, joined: JoinGroupResponse) -> list[SyncGroupRequestAssignment]:
        """Even shares; what a member still has goes to another one only after it was given up."""
        ids = sorted(each.member_id for each in joined.members)
        owners = {
            place: each.member_id for each in joined.members for place in _owned(each.metadata)
        }
        places = [
            (topic, index)
            for topic in self.topics
            for index in range(self.cluster.world.shapes[topic].partitions)
        ]
        shares: dict[str, set[tuple[str, int]]] = {member_id: set() for member_id in ids}
        for number, place in enumerate(places):
            member_id = ids[number % len(ids)]
            if owners.get(place, member_id) == member_id:
                shares[member_id].add(place)
        return [
            SyncGroupRequestAssignment(
                member_id=member_id, assignment=_written(share, self.user_data)
            )
            for member_id, share in shares.items()
        ]

    @property
    def _members(self) -> MembershipCommands:
        return self.cluster.coordinator.members

    def _call(self, kind: str, version: int = 9) -> Call:
        self._asked += 1
        return Call(
            (f"{self.name} {kind}", self._asked),
            version,
            client_id=self.name,
            client_host="/host",
            nonce=str(self._asked),
        )

    def _at_once(self, decision: Any) -> Any:
        (ticket,) = [
            reply.ticket for reply in decision.replies if str(reply.ticket[0]).startswith(self.name)
        ]
        self.cluster.carry_out(decision)
        return self.cluster.answers.pop(ticket)


def _owned(metadata: bytes) -> Places:
    owned = decode_versioned(ConsumerProtocolSubscription, metadata).owned_partitions
    return frozenset((each.topic, index) for each in owned for index in each.partitions)


def _read(assignment: bytes) -> Places:
    if not assignment:
        return NOTHING
    topics = decode_versioned(ConsumerProtocolAssignment, assignment).assigned_partitions
    return frozenset((each.topic, index) for each in topics for index in each.partitions)


def _written(share: set[tuple[str, int]], user_data: bytes | None) -> bytes:
    topics = [
        AssignmentTopicPartition(topic=topic, partitions=[index]) for topic, index in sorted(share)
    ]
    message = ConsumerProtocolAssignment(assigned_partitions=topics, user_data=user_data)
    return encode_versioned(message, 3)
