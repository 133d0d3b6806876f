"""Light members of one group in one process: they join, report, and fetch what they have.

`python -m bench.group_members` has many join at once, one leave and one die, and prints as JSON
how long each took until every partition had its reader again, and what that cost the others.
"""

import argparse
import asyncio
import itertools
import json
import time
import uuid
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from bench.group_wire import Wire, await_coordinator, fetch_of, topic_id_of
from ottla.wire.messages.classic_membership import (
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    LeaveGroupRequest,
    MemberIdentity,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
)
from ottla.wire.messages.consumer_groups import (
    ConsumerGroupHeartbeatRequest,
    TopicPartitions,
)
from ottla.wire.stored import (
    AssignmentTopicPartition,
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    decode_versioned,
    encode_versioned,
)

Share = frozenset[int]
NOTHING: Share = frozenset()
HEARTBEAT_S = 1.0
SESSION_MS = 6_000
_REBALANCE_MS = 60_000
_FETCH_WAIT_MS = 100
_MEMBER_ID_REQUIRED, _REBALANCE_IN_PROGRESS = 79, 27
_PATIENCE_S = 180


class Member(ABC):
    """`share` is what it reads now. It is told nothing of the others."""

    def __init__(self, port: int, group: str, topic: str, topic_id: UUID, count: int) -> None:
        self.port, self.group, self.topic, self.topic_id = port, group, topic, topic_id
        self.count = count
        self.share: Share = NOTHING
        # What it had to give up since `reset`, and whether it ever had nothing.
        self.lost: set[int] = set()
        self.has_stopped = False
        self.fetched_at: list[float] = []
        self.last_contact_s = 0.0
        self._wires: list[Wire] = []
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Connect, and begin."""
        self._wires = [await Wire.open(self.port), await Wire.open(self.port)]
        self._tasks = [asyncio.ensure_future(self._belong()), asyncio.ensure_future(self._fetch())]

    def kill(self) -> None:
        """Say nothing any more."""
        for task in self._tasks:
            task.cancel()
        for wire in self._wires:
            wire.close()

    async def leave(self) -> None:
        """Say so and go."""
        for task in self._tasks:
            task.cancel()
        self._wires[0].close()
        self._wires[0] = await Wire.open(self.port)
        await self._say_goodbye(self._wires[0])
        self.kill()

    def reset(self) -> None:
        """Something is about to happen: what it costs is counted from now on."""
        self.lost, self.has_stopped = set(), False
        self.fetched_at = self.fetched_at[-1:]

    @abstractmethod
    async def _belong(self) -> None: ...

    @abstractmethod
    async def _say_goodbye(self, wire: Wire) -> None: ...

    def _take(self, share: Share) -> None:
        self.lost |= self.share - share
        self.has_stopped |= bool(self.share) and not share
        self.share = share

    async def _fetch(self) -> None:
        while True:
            if not self.share:
                await asyncio.sleep(0.005)
                continue
            asked = self.share
            await self._wires[1].ask(fetch_of(self.topic, asked, _FETCH_WAIT_MS))
            if asked & self.share:
                self.fetched_at.append(time.monotonic())


class Classic(Member):
    """Eager, with the range assignor, as Java's consumer by default."""

    member_id = ""
    generation = -1

    async def _belong(self) -> None:
        wire = self._wires[0]
        while True:
            await self._rejoin(wire)
            while True:
                await asyncio.sleep(HEARTBEAT_S)
                answer = await wire.ask(
                    HeartbeatRequest(
                        group_id=self.group,
                        generation_id=self.generation,
                        member_id=self.member_id,
                    )
                )
                self.last_contact_s = time.monotonic()
                if answer.error_code:
                    break
            assert answer.error_code == _REBALANCE_IN_PROGRESS, answer

    async def _rejoin(self, wire: Wire) -> None:
        self._take(NOTHING)
        metadata = encode_versioned(ConsumerProtocolSubscription(topics=[self.topic]), 3)
        while True:
            joined = await wire.ask(
                JoinGroupRequest(
                    group_id=self.group,
                    session_timeout_ms=SESSION_MS,
                    rebalance_timeout_ms=_REBALANCE_MS,
                    member_id=self.member_id,
                    protocol_type="consumer",
                    protocols=[JoinGroupRequestProtocol(name="range", metadata=metadata)],
                )
            )
            self.last_contact_s = time.monotonic()
            self.member_id = joined.member_id
            if joined.error_code == _MEMBER_ID_REQUIRED:
                continue
            assert joined.error_code == 0, joined
            self.generation = joined.generation_id
            synced = await wire.ask(
                SyncGroupRequest(
                    group_id=self.group,
                    generation_id=self.generation,
                    member_id=self.member_id,
                    protocol_type="consumer",
                    protocol_name="range",
                    assignments=self._shared_out(sorted(each.member_id for each in joined.members)),
                )
            )
            if synced.error_code == _REBALANCE_IN_PROGRESS:
                continue
            assert synced.error_code == 0, synced
            given = decode_versioned(ConsumerProtocolAssignment, synced.assignment)
            self._take(frozenset(i for each in given.assigned_partitions for i in each.partitions))
            return

    def _shared_out(self, ids: Sequence[str]) -> list[SyncGroupRequestAssignment]:
        return [
            SyncGroupRequestAssignment(
                member_id=member_id,
                assignment=encode_versioned(
                    ConsumerProtocolAssignment(
                        assigned_partitions=[
                            AssignmentTopicPartition(
                                topic=self.topic,
                                partitions=list(
                                    range(
                                        place * self.count // len(ids),
                                        (place + 1) * self.count // len(ids),
                                    )
                                ),
                            )
                        ]
                    ),
                    3,
                ),
            )
            for place, member_id in enumerate(ids)
        ]

    async def _say_goodbye(self, wire: Wire) -> None:
        leaving = [MemberIdentity(member_id=self.member_id)]
        await wire.ask(LeaveGroupRequest(group_id=self.group, members=leaving))


class Consumer(Member):
    """KIP-848: it reports what it has, at once where that has changed."""

    member_id = ""
    epoch = 0

    async def _belong(self) -> None:
        self.member_id = str(uuid.uuid4())
        has_news = True
        while True:
            answer = await self._wires[0].ask(self._report(says_all=has_news))
            self.last_contact_s = time.monotonic()
            assert answer.error_code == 0, answer
            self.epoch = answer.member_epoch
            has_news = False
            if answer.assignment is not None:
                share = frozenset(
                    index
                    for each in answer.assignment.topic_partitions
                    for index in each.partitions
                )
                has_news = share != self.share
                self._take(share)
            if not has_news:
                await asyncio.sleep(answer.heartbeat_interval_ms / 1000)

    def _report(self, *, says_all: bool) -> ConsumerGroupHeartbeatRequest:
        owned = [TopicPartitions(topic_id=self.topic_id, partitions=sorted(self.share))]
        return ConsumerGroupHeartbeatRequest(
            group_id=self.group,
            member_id=self.member_id,
            member_epoch=self.epoch,
            rebalance_timeout_ms=_REBALANCE_MS if says_all else -1,
            subscribed_topic_names=[self.topic] if says_all else None,
            topic_partitions=(owned if self.share else []) if says_all else None,
        )

    async def _say_goodbye(self, wire: Wire) -> None:
        await wire.ask(
            ConsumerGroupHeartbeatRequest(
                group_id=self.group, member_id=self.member_id, member_epoch=-1
            )
        )


async def measure(port: int, topic: str, protocol: str, size: int, count: int) -> dict[str, Any]:
    """Times in ms; what each event cost those that it did not concern."""
    group = f"{topic}-{protocol}-{uuid.uuid4().hex[:8]}"
    topic_id = await topic_id_of(port, topic)
    await await_coordinator(port, group)
    kind = Classic if protocol == "classic" else Consumer
    members: list[Member] = [kind(port, group, topic, topic_id, count) for _ in range(size)]
    began_s = time.monotonic()
    await asyncio.gather(*(member.start() for member in members))
    await _whole(members, count, is_even=True)
    result: dict[str, Any] = {"join_ms": _since(began_s)}
    # Everyone has reported once more, so that nothing is left to be done.
    await asyncio.sleep(2 * HEARTBEAT_S)
    result["quiet_gap_ms"] = await _quiet(members)
    first, second, *rest = members
    began_s = _begin(members[1:])
    await first.leave()
    await _whole(members[1:], count)
    result |= {"leave_ms": _since(began_s), **_cost("leave", members[1:], began_s)}
    await asyncio.sleep(2 * HEARTBEAT_S)
    began_s = _begin(rest)
    second.kill()
    await _whole(rest, count)
    result |= {
        "kill_ms": _since(began_s),
        "kill_since_contact_ms": _since(second.last_contact_s),
        **_cost("kill", rest, began_s),
    }
    for member in rest:
        member.kill()
    return result


async def _quiet(members: Sequence[Member]) -> float:
    began_s = _begin(members)
    await asyncio.sleep(1.5)
    return float(_cost("quiet", members, began_s)["quiet_gap_ms"])


def _begin(members: Sequence[Member]) -> float:
    for member in members:
        member.reset()
    return time.monotonic()


async def _whole(members: Sequence[Member], count: int, *, is_even: bool = False) -> None:
    """Until every partition has its one reader, and with `is_even` as many as the others."""
    deadline_s = time.monotonic() + _PATIENCE_S
    while True:
        sizes = [len(member.share) for member in members]
        if sum(sizes) == count and (not is_even or max(sizes) - min(sizes) <= 1):
            assert len(frozenset[int]().union(*(member.share for member in members))) == count
            return
        assert time.monotonic() < deadline_s, sizes
        await asyncio.sleep(0.002)


def _since(began_s: float) -> float:
    return (time.monotonic() - began_s) * 1000


def _cost(event: str, members: Sequence[Member], began_s: float) -> dict[str, float]:
    """How many had to stop, how many partitions were taken away, and the longest pause in ms."""
    now_s = time.monotonic()
    gaps = []
    for member in members:
        times = [each for each in member.fetched_at if each >= began_s]
        edges = [began_s, *times, now_s]
        gaps += [after - before for before, after in itertools.pairwise(edges)]
    return {
        f"{event}_stopped": sum(member.has_stopped for member in members),
        f"{event}_lost": sum(len(member.lost) for member in members),
        f"{event}_gap_ms": max(gaps) * 1000,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--topic", required=True)
    parser.add_argument("--protocol", choices=("classic", "consumer"), required=True)
    parser.add_argument("--members", type=int, default=50)
    parser.add_argument("--partitions", type=int, default=500)
    arguments = parser.parse_args()
    result = asyncio.run(
        measure(
            arguments.port,
            arguments.topic,
            arguments.protocol,
            arguments.members,
            arguments.partitions,
        )
    )
    print(json.dumps(result))


if __name__ == "__main__":
    main()
