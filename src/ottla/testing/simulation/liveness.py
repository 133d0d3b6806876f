"""After all trouble is over: a healthy cluster answers everybody, and its copies are equal."""

import asyncio
from collections.abc import Callable, Sequence

from ottla.client import Consumer, ConsumerOptions, TopicPartition
from ottla.testing.history.operation import Step
from ottla.testing.simulation.replicas import records, replicas_of, state_of
from ottla.testing.simulation.workload import TOPIC, Workload, value_of
from ottla.testing.simulation.world import World

# What is still missing, or None.
Sign = Callable[[], str | None]

# So long may it take, in virtual time.
PATIENCE_S = 60.0
_LOOK_EVERY_S = 0.2
# Clients go on for so long in the healthy world, so that it is used.
_USE_S = 2.0


class Liveness:
    """Waits for each sign of health; what does not come is a failure of the world."""

    def __init__(
        self, world: World, workload: Workload, clients: Sequence[asyncio.Task[None]]
    ) -> None:
        self._world = world
        self._workload = workload
        self._clients = clients
        self._deadline_s = world.loop.time() + PATIENCE_S

    async def prove(self) -> None:
        """All signs, one after the other."""
        world = self._world
        if not await self._until(self._all_serve, "brokers do not come back"):
            return
        await asyncio.sleep(_USE_S)
        self._workload.is_over = True
        await self._until(self._all_answered, "clients are not answered")
        self._workload.readers_are_done = True
        await self._until(self._all_gone, "clients cannot close")
        for client in self._clients:
            if client.done() and client.exception() is not None:
                world.fail(f"a client failed: {client.exception()!r}")
        await self._until(self._copies_are_equal, "copies are not equal")
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

    def _copies_are_equal(self) -> str | None:
        """Every replica is in sync, and all logs are equal to the byte."""
        world = self._world
        for number in range(self._workload.profile.partitions):
            state = state_of(world, TOPIC, number)
            if state is None or set(state.isr) != set(state.replicas):
                return f"{TOPIC}-{number} is in state {state}"
            copies = dict(replicas_of(world, TOPIC, number))
            ends = {broker_id: copy.log_end_offset for broker_id, copy in copies.items()}
            if set(copies) != set(state.replicas) or len(set(ends.values())) > 1:
                return f"{TOPIC}-{number} ends at {ends}"
            begin = max(copy.log_start_offset for copy in copies.values())
            contents = {b: records(copy, begin, copy.log_end_offset) for b, copy in copies.items()}
            if len(set(contents.values())) > 1:
                return f"{TOPIC}-{number}: the copies of {sorted(contents)} differ"
        return None

    async def _read_all(self) -> None:
        process = self._world.user_process("final")
        task = process.spawn(self._world.loop, self._read_to_ends())
        await self._until(lambda: None if task.done() else "reading", "not all can be read")
        if task.done() and task.exception() is not None:
            self._world.fail(f"the last read failed: {task.exception()!r}")

    async def _read_to_ends(self) -> None:
        workload = self._workload
        partitions = [workload.partition(n) for n in range(workload.profile.partitions)]
        op = workload.recorder.invoke("final", "final")
        steps: list[Step] = []
        async with Consumer(workload.bootstrap, ConsumerOptions(request_timeout_ms=5_000)) as all_:
            ends = await all_.end_offsets(partitions)
            begins = await all_.begin_offsets(partitions)
            await all_.assign(partitions)
            left = {p for p in partitions if begins[p] < ends[p]}
            while left:
                for records in await all_.poll(1_000):
                    name = f"{records.topic}-{records.partition}"
                    steps += [
                        Step("poll", name, record.offset, value_of(record.value))
                        for record in records.records
                    ]
                    partition = TopicPartition(records.topic, records.partition)
                    if records.records[-1].offset >= ends[partition] - 1:
                        left.discard(partition)
        offsets = {f"{TOPIC}-{p.partition}": end for p, end in ends.items()}
        workload.recorder.ok(op, steps=steps, offsets=offsets)
