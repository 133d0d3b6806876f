"""A shard with a log in memory whose high watermark, failures and clock the test decides."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import TopicPartition
from ottla.broker.groups.answer import whole_answer
from ottla.broker.groups.shard import GroupShard
from ottla.broker.handlers.classic_membership import Heartbeat, JoinGroup, SyncGroup
from ottla.broker.handlers.group_offsets import OffsetCommit
from ottla.broker.partitions.partition import OnBehalf, Partition
from ottla.broker.requests.request import RequestContext
from ottla.broker.runtime.purgatory import Deadline, Purgatory
from ottla.broker.runtime.signal import Signal
from ottla.group.coordinator.flights import Flights
from ottla.group.values.settings import GroupSettings
from ottla.group.values.topics import NO_TOPICS
from ottla.record.builder import BatchBuilder
from ottla.record.header import read_header
from ottla.storage.recovery.readable import Whole
from ottla.testing.clock import ManualClock
from ottla.wire.messages.classic_membership import (
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
)
from ottla.wire.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)

COMMIT_TIMEOUT_MS = 5_000


class MemoryLog:
    """What a replay reads."""

    def __init__(self) -> None:
        self.batches: list[bytes] = []
        self.log_start_offset = 0
        self.log_end_offset = 0

    @property
    def size_bytes(self) -> int:
        return sum(map(len, self.batches))

    def readable(self, _window_bytes: int) -> Iterator[list[Whole]]:
        """One batch at a time."""
        for batch in self.batches:
            yield [Whole(batch, 0, read_header(batch))]


class MemoryPartition:
    """Appends at once; commits when told."""

    def __init__(self) -> None:
        self.topic_partition = TopicPartition("__consumer_offsets", 0)
        self.index = 0
        self.leader_epoch = 0
        self.config = SimpleNamespace(max_message_bytes=10_000)
        self.log = MemoryLog()
        self.high_watermark = 0
        self.fails_with: ErrorCode | None = None
        self._waiting: list[tuple[int, Callable[[ErrorCode], None]]] = []

    @property
    def log_start_offset(self) -> int:
        return self.log.log_start_offset

    @property
    def log_end_offset(self) -> int:
        return self.log.log_end_offset

    def append_internal(
        self, records: Sequence[tuple[bytes, bytes | None]], _producer: OnBehalf | None = None
    ) -> tuple[int, int]:
        if self.fails_with is not None:
            raise OttlaError(self.fails_with, "as the test wants it")
        builder = BatchBuilder()
        for key, value in records:
            builder.append(0, key, value)
        batch = builder.build()
        base = self.log.log_end_offset
        batch[:8] = base.to_bytes(8, "big")
        self.log.batches.append(bytes(batch))
        self.log.log_end_offset = base + len(records)
        return base, base + len(records) - 1

    def on_high_watermark(self, offset: int, callback: Callable[[ErrorCode], None]) -> None:
        self._waiting.append((offset, callback))

    def commit(self) -> None:
        """Everything appended is committed."""
        self._tell(ErrorCode.NONE)
        self.high_watermark = self.log.log_end_offset

    def fail(self, code: ErrorCode) -> None:
        """Everything that waits fails."""
        self._tell(code)

    def _tell(self, code: ErrorCode) -> None:
        waiting, self._waiting = self._waiting, []
        for _, callback in waiting:
            callback(code)


class ManualPurgatory:
    """Deadlines that come up when the test advances the clock."""

    def __init__(self, clock: ManualClock) -> None:
        self._clock = clock
        self._deadlines: list[Deadline] = []

    def schedule(self, delay_ms: int, callback: Callable[[], None]) -> Deadline:
        deadline = Deadline(self._clock.monotonic_ms() + delay_ms, callback)
        self._deadlines.append(deadline)
        return deadline

    def cancel(self, deadline: Deadline) -> None:
        deadline.callback = None

    def pending(self) -> int:
        return sum(each.callback is not None for each in self._deadlines)

    def run_due(self) -> None:
        now_ms = self._clock.monotonic_ms()
        for deadline in list(self._deadlines):
            if deadline.at_ms <= now_ms and deadline.callback is not None:
                callback, deadline.callback = deadline.callback, None
                callback()


@dataclass
class Request:
    """A request of version 3, and its answers."""

    answers: list[Any] = field(default_factory=list)
    version: int = 3
    client_id: str = "c"
    client_host: str = "127.0.0.1"

    def reply(self, message: Any) -> None:
        assert not self.answers, "answered twice"
        self.answers.append(message)

    @property
    def answer(self) -> Any:
        """None while there is none."""
        return self.answers[0] if self.answers else None


class World:
    """A shard and its surroundings."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.purgatory = ManualPurgatory(self.clock)
        self.partition = MemoryPartition()
        self._uuids = 0
        self.flights = Flights()
        self.shard = self.new_shard()
        self.shard.load_nothing()

    def new_shard(self) -> GroupShard:
        return GroupShard(
            cast("Partition", self.partition),
            GroupSettings(initial_rebalance_delay_ms=0),
            self.clock,
            cast("Purgatory", self.purgatory),
            self._new_uuid,
            self.flights,
            lambda: NO_TOPICS,
            Signal(),
            commit_timeout_ms=COMMIT_TIMEOUT_MS,
            load_bytes=1_000,
        )

    def advance(self, delta_ms: int) -> None:
        self.clock.advance(delta_ms)
        self.purgatory.run_due()

    def join(self, member_id: str = "", **fields: Any) -> Request:
        body = JoinGroupRequest(
            group_id="g",
            session_timeout_ms=10_000,
            rebalance_timeout_ms=10_000,
            member_id=member_id,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
            **fields,
        )
        return self._run(
            body, JoinGroup.on_error, lambda c, call, at: c.members.join(call, body, at)
        )

    def sync(self, member_id: str, generation: int) -> Request:
        share = SyncGroupRequestAssignment(member_id=member_id, assignment=b"all")
        body = SyncGroupRequest(
            group_id="g", generation_id=generation, member_id=member_id, assignments=[share]
        )
        return self._run(
            body, SyncGroup.on_error, lambda c, call, at: c.members.sync(call, body, at)
        )

    def heartbeat(self, member_id: str, generation: int) -> Request:
        body = HeartbeatRequest(group_id="g", generation_id=generation, member_id=member_id)
        return self._run(
            body, Heartbeat.on_error, lambda c, call, at: c.members.heartbeat(call, body, at)
        )

    def commit(self, offset: int, *, metadata: str = "", partitions: int = 1) -> Request:
        """By somebody who is no member."""
        body = OffsetCommitRequest(
            group_id="simple",
            topics=[
                OffsetCommitRequestTopic(
                    name="t",
                    partitions=[
                        OffsetCommitRequestPartition(
                            partition_index=index,
                            committed_offset=offset,
                            committed_metadata=metadata,
                        )
                        for index in range(partitions)
                    ],
                )
            ],
        )

        def check(_topic: object, _index: int) -> ErrorCode:
            return ErrorCode.NONE

        return self._run(
            body,
            OffsetCommit.on_error,
            lambda c, call, at: c.offsets.commit(call, body, check, at),
        )

    def committed(self, shard: GroupShard | None = None) -> int:
        """What the coordinator holds for partition 0 of the simple group."""
        core = (shard or self.shard).coordinator
        assert core is not None
        group = core.registry.groups.get("simple")
        return -1 if group is None else group.offsets[TopicPartition("t", 0)].offset

    def _run(self, body: Any, on_error: Any, command: Any) -> Request:
        request = Request()
        self.shard.run(whole_answer(cast("RequestContext", request), body, on_error), command)
        return request

    def _new_uuid(self) -> UUID:
        self._uuids += 1
        return UUID(int=self._uuids)


def on_loop(scenario: Callable[[], Any]) -> None:
    """Run a scenario that starts tasks."""
    asyncio.run(scenario())
