"""Topics created while faults last: each is complete once they are over."""

import asyncio

from ottla.base.errors import ErrorCode, OttlaError
from ottla.client import Admin, NewTopic
from ottla.testing.simulation.machine.world import World
from verify.simulation.judging.replicas import state_of

MADE_WHILE_AWAY = "topic made while a broker is away"
_PARTITIONS = 2
_PAUSE_S = 1.0


class LateTopics:
    """One administrator that makes `count` topics, one after the other, within `seconds`."""

    def __init__(self, world: World, count: int, replication: int, seconds: float) -> None:
        self._world = world
        self._names = [f"late{number}" for number in range(count)]
        self._replication = replication
        self._pause_s = seconds / (count + 1)
        # Those whose creation was acknowledged.
        self._made: list[str] = []
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin, in a process of its own."""
        process = self._world.user_process("late")
        self._task = process.spawn(self._world.loop, self._make_all())

    def missing(self) -> str | None:
        """What is missing of topics whose creation was acknowledged; None: nothing."""
        if self._task is not None and not self._task.done():
            return "topics are still being made"
        if self._task is not None and self._task.exception() is not None:
            self._world.fail(f"making topics failed: {self._task.exception()!r}")
        for name in self._made:
            for number in range(_PARTITIONS):
                state = state_of(self._world, name, number)
                if state is None or len(state.replicas) != self._replication:
                    return f"{name}-{number} is in state {state}"
                if set(state.isr) != set(state.replicas):
                    return f"{name}-{number} is in state {state}"
        return None

    async def _make_all(self) -> None:
        async with Admin(self._world.bootstrap) as admin:
            for name in self._names:
                await asyncio.sleep(self._pause_s)
                await self._make(admin, name)

    async def _make(self, admin: Admin, name: str) -> None:
        new = NewTopic(
            name=name, partitions=_PARTITIONS, replication_factor=self._replication, config={}
        )
        while True:
            try:
                await admin.topics.create_all([new])
            except OttlaError as error:
                if error.code is not ErrorCode.TOPIC_ALREADY_EXISTS:
                    # The network, the store or a broker is in trouble: again.
                    await asyncio.sleep(_PAUSE_S)
                    continue
            break
        self._made.append(name)
        states = [state_of(self._world, name, number) for number in range(_PARTITIONS)]
        if any(state is not None and len(state.isr) < len(state.replicas) for state in states):
            self._world.count(MADE_WHILE_AWAY)
