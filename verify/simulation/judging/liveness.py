"""After all faults: a healthy cluster answers every client, and its replicas are equal."""

import asyncio
from collections.abc import Callable, Sequence

from ottla.broker.partitions.partition import Partition
from ottla.client import Consumer, ConsumerOptions, TopicPartition
from verify.history.operation import Step
from verify.simulation.checked_world import CheckedWorld
from verify.simulation.copying import TARGET
from verify.simulation.judging.replicas import records, replicas_of, state_of
from verify.simulation.late_topics import LateTopics
from verify.simulation.workload import TOPIC, Workload, value_of

# What is still missing, or None.
Sign = Callable[[], str | None]

_READING = ConsumerOptions(request_timeout_ms=5_000)
# So long may it take, in virtual time.
PATIENCE_S = 60.0
_LOOK_EVERY_S = 0.2
# Clients go on for so long in the healthy world, so that it is used.
_USE_S = 2.0


class Liveness:
    """Waits for each sign of health; one that does not come is a failure of the world."""

    def __init__(
        self,
        world: CheckedWorld,
        workload: Workload,
        clients: Sequence[asyncio.Task[None]],
        late_topics: LateTopics,
    ) -> None:
        self._world = world
        self._workload = workload
        self._clients = clients
        self._late_topics = late_topics
        patience_s = PATIENCE_S if world.copying is None else 1.5 * PATIENCE_S
        self._deadline_s = world.loop.time() + patience_s

    async def prove(self) -> None:
        """All signs, one after the other."""
        world = self._world
        if not await self._until(self._all_serve, "brokers do not come back"):
            return
        await asyncio.sleep(_USE_S)
        self._workload.is_over = True
        await self._until(self._all_answered, "clients are not answered")
        if world.copying is not None:
            await self._until(self._senders_gone, "producers do not end")
            await self._until(self._all_begun, "copiers do not begin")
            await self._until(self._all_copied, "not all is copied")
            world.copying.is_done = True
            await self._until(self._copiers_gone, "copiers do not end")
            await self._until(self._nothing_open, "transactions stay open")
        self._workload.readers_are_done = True
        await self._until(self._all_gone, "clients cannot close")
        for client in self._clients:
            if client.done() and client.exception() is not None:
                world.fail(f"a client failed: {client.exception()!r}")
        await self._until(self._copies_are_equal, "copies are not equal")
        await self._until(self._late_topics.missing, "topics made in trouble are not whole")
        await self._read_all()

    async def _until(self, sign: Sign, complaint: str) -> bool:
        while (missing := sign()) is not None:
            if self._world.loop.time() > self._deadline_s:
                self._world.fail(f"no health: {complaint}: {missing}")
                return False
            await asyncio.sleep(_LOOK_EVERY_S)
        return True

    def _all_serve(self) -> str | None:
        for machine in self._world.machines.values():
            if not machine.is_ready:
                why = machine.start_failure
                return f"{machine.host} ({'starting' if why is None else why.message})"
        return None

    def _all_answered(self) -> str | None:
        unanswered = self._workload.recorder.unanswered("send")
        return f"sends {unanswered[:5]}" if unanswered else None

    def _all_gone(self) -> str | None:
        left = sum(1 for client in self._clients if not client.done())
        return f"{left} of them" if left else None

    def _senders_gone(self) -> str | None:
        profile = self._workload.profile
        senders = self._clients[: profile.producers + profile.hasty_producers]
        left = sum(1 for sender in senders if not sender.done())
        return f"{left} of them" if left else None

    def _all_begun(self) -> str | None:
        assert self._world.copying is not None
        idle = self._world.copying.idle
        return f"{idle}" if idle else None

    def _all_copied(self) -> str | None:
        """The copiers' group has committed all that there is."""
        copying = self._world.copying
        assert copying is not None
        for number in range(self._workload.profile.partitions):
            leader = self._leader(TOPIC, number)
            told = copying.committed.get(TopicPartition(TOPIC, number), 0)
            if leader is None or told != leader.log_end_offset:
                end = None if leader is None else leader.log_end_offset
                return f"{TOPIC}-{number} up to {told} of {end}"
        return None

    def _copiers_gone(self) -> str | None:
        assert self._world.copying is not None
        living = self._world.copying.living
        return f"{living}" if living else None

    def _nothing_open(self) -> str | None:
        """Readers of committed records may read to the end (S26: nothing hangs)."""
        for number in range(self._workload.profile.partitions):
            leader = self._leader(TARGET, number)
            if leader is None or leader.last_stable_offset != leader.log_end_offset:
                stable = None if leader is None else leader.last_stable_offset
                return f"{TARGET}-{number} is stable up to {stable}"
        return None

    def _leader(self, topic: str, number: int) -> Partition | None:
        state = state_of(self._world, topic, number)
        found = {} if state is None else dict(replicas_of(self._world, topic, number))
        leader = None if state is None else found.get(state.leader)
        return leader if leader is not None and leader.leader is not None else None

    def _copies_are_equal(self) -> str | None:
        topics = [TOPIC] if self._world.copying is None else [TOPIC, TARGET]
        return next(filter(None, map(self._are_equal, topics)), None)

    def _are_equal(self, topic: str) -> str | None:
        """Every replica is in sync, and all logs are equal to the byte."""
        world = self._world
        for number in range(self._workload.profile.partitions):
            state = state_of(world, topic, number)
            if state is None or set(state.isr) != set(state.replicas):
                return f"{topic}-{number} is in state {state}"
            copies = dict(replicas_of(world, topic, number))
            ends = {broker_id: copy.log_end_offset for broker_id, copy in copies.items()}
            if set(copies) != set(state.replicas) or len(set(ends.values())) > 1:
                return f"{topic}-{number} ends at {ends}"
            begin = max(copy.log_start_offset for copy in copies.values())
            contents = {b: records(copy, begin, copy.log_end_offset) for b, copy in copies.items()}
            if len(set(contents.values())) > 1:
                return f"{topic}-{number}: the copies of {sorted(contents)} differ"
        return None

    async def _read_all(self) -> None:
        process = self._world.user_process("final")
        task = process.spawn(self._world.loop, self._read_to_ends())
        await self._until(lambda: None if task.done() else "reading", "not all can be read")
        if task.done() and task.exception() is not None:
            self._world.fail(f"the last read failed: {task.exception()!r}")

    async def _read_to_ends(self) -> None:
        found = await self._read_topic(TOPIC, _READING)
        copying = self._world.copying
        if copying is not None:
            copies = await self._read_topic(
                TARGET, {**_READING, "isolation_level": "read_committed"}
            )
            sources: dict[int, list[int]] = {}
            for step in found:
                assert step.offset is not None
                number = int(step.partition.rpartition("-")[2])
                sources.setdefault(number, []).append(step.offset)
            copying.judge(sources, [step.value for step in copies])

    async def _read_topic(self, topic: str, options: ConsumerOptions) -> list[Step]:
        """All that a topic holds for such a reader; written down."""
        workload = self._workload
        partitions = [
            TopicPartition(topic, number) for number in range(workload.profile.partitions)
        ]
        op = workload.recorder.invoke("final", "final")
        steps: list[Step] = []
        async with Consumer(workload.bootstrap, **options) as all_:
            ends = await all_.end_offsets(partitions)
            begins = await all_.beginning_offsets(partitions)
            await all_.assign(partitions)
            left = {p for p in partitions if begins[p] < ends[p]}
            while left:
                for records in (await all_.poll(1)).by_partition:
                    name = f"{records.topic}-{records.partition}"
                    steps += [
                        Step("poll", name, record.offset, value_of(record.value))
                        for record in records.records
                    ]
                left = {p for p in left if await all_.position(p) < ends[p]}
        offsets = {f"{topic}-{p.partition}": end for p, end in ends.items()}
        workload.recorder.ok(op, steps=steps, offsets=offsets)
        return steps
