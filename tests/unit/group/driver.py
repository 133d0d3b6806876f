"""A coordinator with a log in a list: decides, appends, applies, hands the replies back."""

from typing import Any

from ottla.base.errors import ErrorCode
from ottla.base.ids import TopicPartition
from ottla.group.coordinator.coordinator import GroupCoordinator
from ottla.group.coordinator.flights import Flight, Flights
from ottla.group.model.group import Group
from ottla.group.model.turn import Call, GroupDecision, Moment
from ottla.group.offsets.stored_offsets import FetchedTopic
from ottla.group.records.stored import CommittedOffset, StoredGroup, decode, encode
from ottla.group.values.settings import GroupSettings
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
from ottla.wire.stored import ConsumerProtocolSubscription, encode_versioned

TIMESTAMP = 1_700_000_000_000


def subscription(*topics: str) -> bytes:
    return encode_versioned(ConsumerProtocolSubscription(topics=list(topics)), 0)


class Driver:
    """Tickets are the strings the tests give; `answers` holds what each was told."""

    def __init__(self, **settings: int) -> None:
        self.settings = GroupSettings(**{"initial_rebalance_delay_ms": 0, **settings})
        self.coordinator = GroupCoordinator(self.settings)
        self.log: list[tuple[bytes, bytes | None]] = []
        self.answers: dict[str, Any] = {}
        self.flights = Flights()
        self.now_ms = 0

    @property
    def at(self) -> Moment:
        return Moment(self.now_ms, TIMESTAMP + self.now_ms)

    def carry_out(self, decision: GroupDecision) -> None:
        self.flights.take(decision.notes, self.at)
        for record in decision.records:
            self.log.append(encode(record))
            self.coordinator.registry.apply(record)
        for reply in decision.replies:
            assert reply.ticket not in self.answers, f"{reply.ticket} is answered twice"
            self.answers[str(reply.ticket)] = reply.message

    def advance(self, delta_ms: int) -> None:
        """Let time pass, deadline by deadline."""
        end = self.now_ms + delta_ms
        while True:
            next_ms = self.coordinator.next_deadline_ms()
            if next_ms is None or next_ms > end:
                break
            self.now_ms = max(self.now_ms, next_ms)
            self.carry_out(self.coordinator.on_deadline(self.at))
        self.now_ms = end

    def restart(self) -> None:
        """Replay the log into a new coordinator."""
        self.coordinator = GroupCoordinator(self.settings)
        for key, value in self.log:
            record = decode(key, value)
            assert record is not None
            self.coordinator.registry.apply(record)
        self.carry_out(self.coordinator.start(self.at))

    def durable(
        self,
    ) -> dict[str, tuple[StoredGroup | None, dict[TopicPartition, CommittedOffset]]]:
        """What must survive."""
        return {
            group.group_id: (group.stored, group.offsets)
            for group in self.coordinator.registry.groups.values()
            if group.stored is not None or group.offsets
        }

    def group(self, group_id: str = "g") -> Group:
        return self.coordinator.registry.groups[group_id]

    @property
    def flight(self) -> Flight:
        """The latest rebalance of the group."""
        return self.flights.of("g")[-1]

    def join(
        self,
        ticket: str,
        member_id: str = "",
        *,
        version: int = 9,
        instance: str | None = None,
        protocols: tuple[tuple[str, bytes], ...] = (("range", b"r"),),
        protocol_type: str = "consumer",
        session_ms: int = 10_000,
        rebalance_ms: int = 60_000,
        group_id: str = "g",
    ) -> JoinGroupResponse | None:
        """The answer, or None while it is awaited. The nonce of a new id is the ticket."""
        request = JoinGroupRequest(
            group_id=group_id,
            session_timeout_ms=session_ms,
            rebalance_timeout_ms=rebalance_ms,
            member_id=member_id,
            group_instance_id=instance,
            protocol_type=protocol_type,
            protocols=[JoinGroupRequestProtocol(name=n, metadata=m) for n, m in protocols],
        )
        call = Call(ticket, version, client_id="c", client_host="/127.0.0.1", nonce=ticket)
        self.carry_out(self.coordinator.members.join(call, request, self.at))
        answer: JoinGroupResponse | None = self.answers.get(ticket)
        return answer

    def sync(
        self,
        ticket: str,
        member_id: str,
        generation: int,
        shares: dict[str, bytes] | None = None,
        *,
        instance: str | None = None,
        protocol_name: str | None = None,
    ) -> Any:
        request = SyncGroupRequest(
            group_id="g",
            generation_id=generation,
            member_id=member_id,
            group_instance_id=instance,
            protocol_type=None if protocol_name is None else "consumer",
            protocol_name=protocol_name,
            assignments=[
                SyncGroupRequestAssignment(member_id=each, assignment=share)
                for each, share in (shares or {}).items()
            ],
        )
        self.carry_out(self.coordinator.members.sync(Call(ticket, 5), request, self.at))
        return self.answers.get(ticket)

    def heartbeat(self, member_id: str, generation: int, instance: str | None = None) -> ErrorCode:
        request = HeartbeatRequest(
            group_id="g",
            generation_id=generation,
            member_id=member_id,
            group_instance_id=instance,
        )
        return ErrorCode(
            self._at_once(
                self.coordinator.members.heartbeat(Call("", 4), request, self.at)
            ).error_code
        )

    def leave(
        self, *members: tuple[str, str | None], version: int = 5, reason: str | None = None
    ) -> list[ErrorCode]:
        request = LeaveGroupRequest(
            group_id="g",
            member_id=members[0][0] if version < 3 else "",
            members=[
                MemberIdentity(member_id=m, group_instance_id=i, reason=reason) for m, i in members
            ]
            if version >= 3
            else [],
        )
        answer = self._at_once(self.coordinator.members.leave(Call("", version), request, self.at))
        if version < 3:
            return [ErrorCode(answer.error_code)]
        return [ErrorCode(each.error_code) for each in answer.members]

    def commit(
        self,
        offset: int,
        *,
        member_id: str = "",
        generation: int = -1,
        instance: str | None = None,
        topic: str = "t",
        partition: int = 0,
        metadata: str | None = "",
        retention_ms: int = -1,
        version: int = 9,
        group_id: str = "g",
        check: ErrorCode = ErrorCode.NONE,
    ) -> ErrorCode:
        request = OffsetCommitRequest(
            group_id=group_id,
            generation_id_or_member_epoch=generation,
            member_id=member_id,
            group_instance_id=instance,
            retention_time_ms=retention_ms,
            topics=[
                OffsetCommitRequestTopic(
                    name=topic,
                    partitions=[
                        OffsetCommitRequestPartition(
                            partition_index=partition,
                            committed_offset=offset,
                            committed_leader_epoch=4,
                            committed_metadata=metadata,
                        )
                    ],
                )
            ],
        )
        decision = self.coordinator.offsets.commit(
            Call("", version), request, lambda _topic, _index: check, self.at
        )
        return ErrorCode(self._at_once(decision).topics[0].partitions[0].error_code)

    def committed(self, topic: str = "t", partition: int = 0, group_id: str = "g") -> int:
        """The offset OffsetFetch tells, -1 for none."""
        return self.fetch([(topic, [partition])], group_id)[0].partitions[0].offset

    def fetch(self, wanted: Any, group_id: str = "g") -> list[FetchedTopic]:
        call = Call("", 9)
        answer: list[FetchedTopic] = self._at_once(
            self.coordinator.offsets.fetch(call, group_id, wanted, lambda topics: topics)
        )
        return answer

    def expire(self) -> None:
        self.carry_out(self.coordinator.offsets.expire_offsets(self.at))

    def stable_group(self, *names: str, topics: tuple[str, ...] = ("t",)) -> dict[str, str]:
        """Members that know their shares; returns their ids by name. The first one leads."""
        protocols = (("range", subscription(*topics)),)
        ids = {}
        for name in names:
            told = self.join(f"id {name}", protocols=protocols)
            assert told is not None
            ids[name] = told.member_id
        leader, *others = names
        self.join(f"join {leader}", ids[leader], protocols=protocols)
        for name in others:
            self.join(f"join {name}", ids[name], protocols=protocols)
        if f"join {leader}" in self.answers and others:
            self.join(f"join {leader} again", ids[leader], protocols=protocols)
        generation = self.group().generation
        for name in others:
            self.sync(f"sync {name}", ids[name], generation)
        shares = {member_id: name.encode() for name, member_id in ids.items()}
        self.sync(f"sync {leader}", ids[leader], generation, shares)
        assert self.group().state == "Stable"
        self.answers.clear()
        return ids

    def _at_once(self, decision: GroupDecision) -> Any:
        """Carry out a command that is answered by its own decision, with an empty ticket."""
        self.carry_out(decision)
        return self.answers.pop("")
