"""Programs that copy a topic to another in transactions, and readers of what they commit.

Each record of the source stands in the target exactly once in the end, as readers of committed
records see it: whatever is killed, stands still, or is taken over by a twin in between.
"""

import asyncio
from collections import Counter
from random import Random
from typing import NamedTuple

from ottla.base.chance import new_random
from ottla.base.errors import OttlaError
from ottla.client import (
    Consumer,
    ConsumerOptions,
    Delivery,
    Producer,
    ProducerFenced,
    ProducerOptions,
    Records,
    TopicPartition,
    TransactionFailed,
)
from ottla.client.common.errors import ConnectionFailed, RequestTimedOut
from ottla.testing.simulation.machine.world import World
from ottla.testing.simulation.virtual.process import Process
from verify.history.operation import Step
from verify.simulation.workload import TOPIC, Workload, value_of

TARGET = "copies"
COPY_GROUP = "copiers"
_AGAIN_S = 0.2
# How often a copier takes too long.
_TAKES_TOO_LONG = 0.02


class _Attempt(NamedTuple):
    """One transaction: its operation in the history, what it read, and what it writes where."""

    op: int
    polls: list[Step]
    values: dict[int, list[str]]
    offsets: dict[TopicPartition, int]


class Copying:
    """All copiers of one run, by slot: a slot has one transactional id, and one process or more."""

    def __init__(self, world: World, workload: Workload) -> None:
        self.world = world
        self._workload = workload
        self._profile = workload.profile
        self._recorder = workload.recorder
        self._attempts = 0
        # The processes of each slot, oldest first.
        self.slots: list[list[Process]] = [[] for _ in range(self._profile.copiers)]
        self._lives: dict[asyncio.Task[None], None] = {}
        # The processes that have called init_transactions.
        self._begun: dict[Process, None] = {}
        # Copiers begin nothing new.
        self.is_done = False
        # What the group has committed, by the last answer.
        self.committed: dict[TopicPartition, int] = {}

    @property
    def transaction_version(self) -> int:
        """As clients have it: whether each transaction has an epoch of its own."""
        return self._profile.transaction_version

    # -- processes

    def start(self) -> None:
        """Start a process in every slot, and a reader of what they commit."""
        for slot in range(len(self.slots)):
            self.start_copier(slot)
        self._spawn(self.world.user_process("c1"), self._read("c1"))
        self._spawn(self.world.user_process("auditor"), self._audit())

    def start_copier(self, slot: int) -> None:
        """Start a process; it fences the one that runs in the slot already."""
        processes = self.slots[slot]
        name = f"x{slot + 1}#{len(processes) + 1}"
        process = self.world.another_process(name, f"x{slot + 1}")
        processes.append(process)
        self._spawn(process, self._live(slot, process))

    def start_dead(self) -> None:
        """Start a process in every slot whose newest one was killed."""
        for slot, processes in enumerate(self.slots):
            if not processes[-1].is_alive:
                self.start_copier(slot)

    def kill_copier(self, slot: int) -> None:
        """Kill the slot's newest process."""
        process = self.slots[slot][-1]
        process.kill()
        self.world.network.end_process(process)

    def _spawn(self, process: Process, life: object) -> None:
        task = process.spawn(self.world.loop, life)  # type: ignore[arg-type]
        self._lives[task] = None

    @property
    def living(self) -> list[str]:
        """The processes that have not ended, of those that can."""
        return [
            process.name
            for slot in self.slots
            for process in slot
            if process.is_alive and any(task in self._lives for task in process.tasks)
        ]

    @property
    def idle(self) -> list[str]:
        """The newest processes of their slots that have not begun yet."""
        return [processes[-1].name for processes in self.slots if processes[-1] not in self._begun]

    # -- a copier's life

    async def _live(self, slot: int, process: Process) -> None:
        chance = new_random()
        while not self.is_done:
            try:
                await self._work(slot, process, chance)
            except OttlaError as error:
                if isinstance(error, ProducerFenced):
                    self.world.count("copier fenced")
                # Fenced by another process: beginning again would fence that one in turn.
                if process is not self.slots[slot][-1]:
                    return
                await asyncio.sleep(_AGAIN_S)

    async def _work(self, slot: int, process: Process, chance: Random) -> None:
        """Copy until something goes wrong; then begin again from what is committed."""
        profile, name = self._profile, process.name
        options: ProducerOptions = {
            **_SENDING,
            "transactional_id": f"copier-{slot + 1}",
            "linger_ms": chance.choice([0, 5]),
            "transaction_timeout_ms": profile.transaction_ms,
            "transaction_version_max": profile.transaction_version,
        }
        producer = Producer(self._workload.bootstrap, **options)
        consumer = Consumer(self._workload.bootstrap, **self._reading(COPY_GROUP))
        failure: OttlaError | None = None
        self._begun.pop(process, None)
        try:
            await producer.init_transactions()
            self._begun[process] = None
            self._recorder.ok(self._recorder.invoke(name, "subscribe"))
            consumer.subscribe(TOPIC)
            while not self.is_done:
                found = (await consumer.poll(profile.poll_ms / 1000)).by_partition
                if found:
                    await self._copy(name, producer, consumer, found, chance)
                await asyncio.sleep(chance.random() * (profile.idle_ms / 1000))
        except OttlaError as error:
            failure = error
        # Not for those that are killed: they close nothing.
        await consumer.close()
        await producer.close()
        if failure is not None:
            raise failure

    async def _copy(
        self,
        name: str,
        producer: Producer,
        consumer: Consumer,
        found: list[Records],
        chance: Random,
    ) -> None:
        """One transaction. Raises where the consumer has to begin again."""
        attempt = self._attempt(name, found)
        try:
            await producer.begin_transaction()
            sent = await self._send(producer, attempt)
            await producer.send_offsets_to_transaction(attempt.offsets, consumer.group_metadata())
            gives_up = chance.random() < self._profile.gives_up
            takes_too_long = chance.random() < _TAKES_TOO_LONG
            if takes_too_long and not self._workload.is_over:
                await asyncio.sleep(self._profile.transaction_ms * 1.5 / 1000)
            if gives_up:
                if chance.random() < 0.5:
                    await producer.flush()
                await producer.abort_transaction()
        except OttlaError:
            # It never asks to commit this one.
            self._recorder.fail(attempt.op)
            raise
        if gives_up:
            self.world.count("transaction aborted")
            self._recorder.fail(attempt.op)
            # Of several batches of a partition the first is where to begin again.
            for batch in reversed(found):
                where = TopicPartition(batch.topic, batch.partition)
                if where in consumer.assignment():
                    consumer.seek(where, batch.records[0].offset)
        else:
            await self._commit(producer, attempt, sent)

    async def _commit(
        self, producer: Producer, attempt: _Attempt, sent: dict[int, list[Delivery]]
    ) -> None:
        while True:
            try:
                await producer.commit_transaction()
            except (RequestTimedOut, ConnectionFailed):
                await asyncio.sleep(_AGAIN_S)
            except TransactionFailed:
                self._recorder.fail(attempt.op)
                raise
            except OttlaError:
                self._recorder.info(attempt.op)
                raise
            else:
                break
        self.world.count("transaction committed")
        steps = list(attempt.polls)
        for partition, deliveries in sent.items():
            offsets = [
                delivery.base_offset + number if delivery.base_offset >= 0 else None
                for delivery in deliveries
                for number in range(delivery.record_count)
            ]
            at = f"{TARGET}-{partition}"
            values = attempt.values[partition]
            steps += [Step("send", at, *pair) for pair in zip(offsets, values, strict=True)]
        self._recorder.ok(attempt.op, steps=steps)

    def _attempt(self, name: str, found: list[Records]) -> _Attempt:
        """Name each copy for its source and this transaction, and write the intent down."""
        self._attempts += 1
        polls: list[Step] = []
        values: dict[int, list[str]] = {}
        offsets: dict[TopicPartition, int] = {}
        for batch in found:
            target = (batch.partition + 1) % self._profile.partitions
            for record in batch.records:
                source = f"{batch.topic}-{batch.partition}"
                polls.append(Step("poll", source, record.offset, value_of(record.value)))
                copy = f"{batch.partition}:{record.offset}@{self._attempts}"
                values.setdefault(target, []).append(copy)
            where = TopicPartition(batch.topic, batch.partition)
            offsets[where] = batch.records[-1].offset + 1
        sends = [
            Step("send", f"{TARGET}-{partition}", None, value)
            for partition, copies in values.items()
            for value in copies
        ]
        op = self._recorder.invoke(name, "txn", steps=[*polls, *sends])
        return _Attempt(op, polls, values, offsets)

    async def _send(self, producer: Producer, attempt: _Attempt) -> dict[int, list[Delivery]]:
        return {
            partition: await producer.send_batch(
                TARGET, [value.encode() for value in values], partition=partition
            )
            for partition, values in attempt.values.items()
        }

    # -- those who look

    def _reading(self, group: str | None = None) -> ConsumerOptions:
        return {**self._workload.reading(group), "isolation_level": "read_committed"}

    async def _read(self, name: str) -> None:
        """Read what is committed, and write it down."""
        names = [TopicPartition(TARGET, index) for index in range(self._profile.partitions)]
        while not self._workload.readers_are_done:
            async with Consumer(self._workload.bootstrap, **self._reading()) as consumer:
                if not await self._workload.assign(name, consumer, names):
                    continue
                while not self._workload.readers_are_done:
                    await self._workload.poll(name, consumer)
                    await asyncio.sleep(_AGAIN_S)

    async def _audit(self) -> None:
        """Ask what the group has committed, once nothing more is sent."""
        names = [TopicPartition(TOPIC, index) for index in range(self._profile.partitions)]
        async with Consumer(self._workload.bootstrap, **self._reading(COPY_GROUP)) as consumer:
            while not self.is_done:
                await asyncio.sleep(1.0)
                if self._workload.is_over:
                    try:
                        told = {where: await consumer.committed(where) for where in names}
                    except OttlaError:
                        continue
                    self.committed = {
                        where: offset for where, offset in told.items() if offset is not None
                    }

    # -- judgement

    def judge(self, sources: dict[int, list[int]], copies: list[str]) -> None:
        """`sources` are the offsets of records in each partition; `copies` what was read last."""
        expected = Counter(
            f"{partition}:{offset}" for partition, offsets in sources.items() for offset in offsets
        )
        found = Counter(copy.partition("@")[0] for copy in copies)
        for source in sorted((expected - found).keys())[:5]:
            self.world.fail(f"not copied: {source}")
        for source in sorted((found - expected).keys())[:5]:
            self.world.fail(f"copied {found[source]} times: {source}")


_SENDING = ProducerOptions(
    request_timeout_ms=2_000,
    connect_timeout_ms=1_000,
    delivery_timeout_ms=15_000,
    retry_backoff_ms=20,
    retry_backoff_max_ms=300,
)
