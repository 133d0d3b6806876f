"""The same random conversation is held with Apache Kafka and with us: the answers are the same.

Three clients speak out of turn: with ids that are not theirs, in old generations, in the wrong
state. A failing seed is its own reproduction.
"""

import random
import time
from collections.abc import Iterator
from typing import Any

import pytest
from rig import kafka as kafka_rig

import ottla.testing
from ottla.base.errors import ErrorCode
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
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetFetchRequest,
    OffsetFetchRequestTopic,
)
from ottla.wire.messages.groups import DescribeGroupsRequest
from ottla.wire.notation import Message
from tests.integration.groups.conftest import GroupsBroker
from tests.integration.groups.wire_client import WireClient
from tests.unit.group.driver import subscription

CLIENTS = 3
STEPS = 50
TURN_S = 0.02
# How long both must be silent to be taken for waiting, and how long one may answer later.
QUIET_TURNS = 5
PATIENCE_S = 60.0
# A difference that is one comes back; what came of a busy machine does not.
ATTEMPTS = 3

Said = tuple[Message, int]


@pytest.fixture(scope="module")
def both() -> Iterator[tuple[GroupsBroker, GroupsBroker]]:
    """Kafka first, then ours, each with a topic `t`."""
    if reason := kafka_rig.available():
        pytest.skip(reason)
    with kafka_rig.kafka(quick=True) as theirs, ottla.testing.Broker() as ours:
        brokers = GroupsBroker(theirs.port), GroupsBroker(ours.port)
        for broker in brokers:
            broker.create_topic("t")
        yield brokers


class Side:
    """One broker, and what its clients wait for. Member ids go by names both sides share."""

    def __init__(self, broker: GroupsBroker, group: str) -> None:
        self.clients = [WireClient(broker.port) for _ in range(CLIENTS)]
        self.clients[0].find_coordinator(group)
        self.waiting: list[Said | None] = [None] * CLIENTS
        self.name_of = {"": ""}
        self.id_of = {"": ""}

    def send(self, who: int, request: Message, version: int) -> None:
        self.clients[who].send(request, version)
        self.waiting[who] = (request, version)

    def take_answers(self) -> dict[int, Any]:
        """What has come, by client."""
        answers = {}
        for who, said in enumerate(self.waiting):
            if said is not None and not self.clients[who].is_silent(0.001):
                answers[who] = self.clients[who].receive(*said)
                self.waiting[who] = None
        return answers

    def name(self, who: int, member_id: str) -> None:
        """Give an id that a client was told a name that does not depend on it."""
        if member_id not in self.name_of:
            name = f"{who}.{len(self.name_of)}"
            self.name_of[member_id] = name
            self.id_of[name] = member_id

    def plain(self, value: Any) -> Any:
        """An answer as values that can be compared; the order of members does not count."""
        if isinstance(value, Message):
            fields = type(value).__slots__
            return {name: self.plain(getattr(value, name)) for name in fields}
        if isinstance(value, list):
            return sorted((self.plain(each) for each in value), key=repr)
        if isinstance(value, str) and len(value) > 36:
            return self.name_of.get(value, "somebody")
        return value

    def close(self) -> None:
        for client in self.clients:
            client.__exit__()


class Conversation:
    """What is said next: the same on both sides, by name."""

    def __init__(self, seed: int, group: str) -> None:
        self.rng = random.Random(seed)
        self.group = group
        self.generation = 0
        self.instances = [self.rng.choice([None, f"i{who}"]) for who in range(CLIENTS)]

    def next_request(self, who: int, sides: list[Side]) -> list[Said]:
        """One request per side."""
        rng = self.rng
        names = list(sides[1].id_of)
        name = rng.choice([*names[-4:], ""])
        generation = max(0, self.generation - rng.choice([0, 0, 0, 1]))
        instance = rng.choice([self.instances[who], self.instances[who], None])
        version = rng.choice([3, 4, 5, 9])
        offered = rng.choice(["range", "range", "range sticky", "sticky range", "other"]).split()
        metadata = rng.choice([b"?", subscription("t"), subscription("t")])
        build = rng.choice(
            [
                *(self._join, self._join, self._join, self._sync, self._sync),
                *(self._heartbeat, self._leave, self._commit, self._commit_alone),
                *(self._fetch, self._describe, self._delete_offsets),
            ]
        )
        self._arguments = (generation, instance, version, offered, metadata, rng.randrange(100))
        return [build(side, side.id_of[name]) for side in sides]

    def _join(self, _side: Side, member_id: str) -> Said:
        _, instance, version, offered, metadata, _ = self._arguments
        protocols = [JoinGroupRequestProtocol(name=each, metadata=metadata) for each in offered]
        request = JoinGroupRequest(
            group_id=self.group,
            session_timeout_ms=30_000,
            rebalance_timeout_ms=30_000,
            member_id=member_id,
            group_instance_id=instance if version >= 5 else None,
            protocol_type="consumer",
            protocols=protocols,
        )
        return request, version

    def _sync(self, side: Side, member_id: str) -> Said:
        generation, instance, *_ = self._arguments
        shares = [
            SyncGroupRequestAssignment(member_id=each, assignment=name.encode())
            for name, each in side.id_of.items()
            if name
        ]
        request = SyncGroupRequest(
            group_id=self.group,
            generation_id=generation,
            member_id=member_id,
            group_instance_id=instance,
            assignments=shares,
        )
        return request, 4

    def _heartbeat(self, _side: Side, member_id: str) -> Said:
        generation, instance, *_ = self._arguments
        request = HeartbeatRequest(
            group_id=self.group,
            generation_id=generation,
            member_id=member_id,
            group_instance_id=instance,
        )
        return request, 4

    def _leave(self, _side: Side, member_id: str) -> Said:
        leaving = MemberIdentity(member_id=member_id, group_instance_id=self._arguments[1])
        return LeaveGroupRequest(group_id=self.group, members=[leaving]), 4

    def _commit(self, _side: Side, member_id: str) -> Said:
        generation, instance, *_ = self._arguments
        request, version = self._commit_alone(_side, member_id)
        request.member_id = member_id
        request.group_instance_id = instance
        request.generation_id_or_member_epoch = generation
        return request, version

    def _commit_alone(self, _side: Side, _member_id: str) -> tuple[OffsetCommitRequest, int]:
        partition = OffsetCommitRequestPartition(
            partition_index=0, committed_offset=self._arguments[5], committed_metadata=""
        )
        topic = OffsetCommitRequestTopic(name="t", partitions=[partition])
        return OffsetCommitRequest(group_id=self.group, topics=[topic]), 8

    def _fetch(self, _side: Side, _member_id: str) -> Said:
        topic = OffsetFetchRequestTopic(name="t", partition_indexes=[0])
        return OffsetFetchRequest(group_id=self.group, topics=[topic]), 5

    def _describe(self, _side: Side, _member_id: str) -> Said:
        return DescribeGroupsRequest(groups=[self.group]), 5

    def _delete_offsets(self, _side: Side, _member_id: str) -> Said:
        partition = OffsetDeleteRequestPartition(partition_index=0)
        topic = OffsetDeleteRequestTopic(name="t", partitions=[partition])
        return OffsetDeleteRequest(group_id=self.group, topics=[topic]), 0


def _answers(sides: list[Side]) -> list[dict[int, Any]]:
    """What both tell in this turn, with patience for the slower one."""
    told: list[dict[int, Any]] = [{}, {}]
    turns, deadline_s = 0, time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline_s:
        time.sleep(TURN_S)
        turns += 1
        for side, answers in zip(sides, told, strict=True):
            answers.update(side.take_answers())
        agree = told[0].keys() == told[1].keys()
        if agree and (told[0] or turns >= QUIET_TURNS):
            break
        if not agree and turns >= 3 * QUIET_TURNS and _answered_by_us_alone(told):
            break
    for who in range(CLIENTS):
        for side, answers in zip(sides, told, strict=True):
            if isinstance(answers.get(who), JoinGroupResponse):
                side.name(who, answers[who].member_id)
    return told


def _answered_by_us_alone(told: list[dict[int, Any]]) -> bool:
    """Whether Kafka is silent where we tell of a rebalance: it never answers what was repeated."""
    theirs, ours = told
    return any(
        who not in theirs and answer.error_code == ErrorCode.REBALANCE_IN_PROGRESS
        for who, answer in ours.items()
    )


def _may_differ(told: list[dict[int, Any]]) -> bool:
    """Where we part from Kafka on purpose, or where Kafka itself answers by chance.

    Kafka elects a new leader, and breaks a tie of votes, by the order of a hash map; it never
    answers a join or sync that its client has repeated; and it calls it a failure of its own
    when an id that has not joined yet comes with an instance id.
    """
    for who in told[1].keys() | told[0].keys():
        theirs, ours = told[0].get(who), told[1].get(who)
        if theirs is None or ours is None:
            return _answered_by_us_alone(told)
        if isinstance(theirs, JoinGroupResponse) and isinstance(ours, JoinGroupResponse):
            if theirs.error_code == ErrorCode.UNKNOWN_SERVER_ERROR:
                return True
            if (theirs.leader == theirs.member_id) != (ours.leader == ours.member_id):
                return True
            if theirs.protocol_name != ours.protocol_name and ours.error_code == ErrorCode.NONE:
                return True
    return False


@pytest.mark.parametrize("seed", range(12))
def test_answers_are_kafkas(both: tuple[GroupsBroker, GroupsBroker], seed: int) -> None:
    """Error codes, generations, members, shares, offsets and states, step by step."""
    differences = []
    for _ in range(ATTEMPTS):
        difference = _difference(both, seed)
        if difference is None:
            return
        differences.append(difference)
    raise AssertionError(differences)


def _difference(both: tuple[GroupsBroker, GroupsBroker], seed: int) -> object | None:
    """Hold the conversation; what both told where they parted, and what had been said."""
    group = f"talk-{seed}-{time.monotonic_ns()}"
    sides = [Side(broker, group) for broker in both]
    talk = Conversation(seed, group)
    said: list[object] = []
    try:
        for _ in range(STEPS):
            who = talk.rng.randrange(CLIENTS)
            if all(side.waiting[who] is None for side in sides):
                for side, request in zip(sides, talk.next_request(who, sides), strict=True):
                    side.send(who, *request)
                    said.append((who, request))
            told = _answers(sides)
            if _may_differ(told):
                return None
            plain = [
                {who: side.plain(answer) for who, answer in answers.items()}
                for side, answers in zip(sides, told, strict=True)
            ]
            if plain[1] != plain[0]:
                return plain, said[-6:]
            for answer in told[1].values():
                talk.generation = max(talk.generation, getattr(answer, "generation_id", 0))
        return None
    finally:
        for side in sides:
            side.close()
