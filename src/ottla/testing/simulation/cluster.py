"""A simulated cluster for tests of your own programs.

    @ottla.testing.simulated(seed=7)
    async def test_nothing_is_lost_when_the_power_goes() -> None:
        async with ottla.testing.simulate(brokers=3) as cluster:
            await cluster.create_topic("orders", partitions=3)
            async with Producer(cluster.bootstrap) as producer:
                await producer.send_and_wait("orders", b"one")
                await cluster.crash(1, power=True)
                await producer.send_and_wait("orders", b"two")
            await cluster.advance(days=8)

Time is virtual: a wait of a day takes no real time. Programs use `ottla.client` with asyncio.
Code that opens sockets, starts threads or reads clocks itself cannot run in a simulation.
"""

import asyncio
import functools
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from typing import Any, ParamSpec

from ottla.base.chance import set_chance
from ottla.base.clock import set_current_clock
from ottla.base.errors import ErrorCode, OttlaError
from ottla.client import Admin, NewTopic
from ottla.testing.simulation.machine.machine import Machine
from ottla.testing.simulation.machine.world import World
from ottla.testing.simulation.virtual.loop import MachineClock, VirtualLoop, run_virtual
from ottla.testing.simulation.virtual.process import PROCESS

Parameters = ParamSpec("Parameters")

_USER = "user"
_PATIENCE_S = 60.0
_LOOK_EVERY_S = 0.05
# If `advance` is called for a longer time, only this last part is simulated. All clocks jump over
# the first part.
_LIVED_S = 900.0


class SimulatedCluster:
    """The simulated cluster that a test uses and disturbs. Broker ids begin with 1."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._clock = MachineClock(world.loop)

    @property
    def bootstrap(self) -> list[str]:
        """Return the addresses for the clients' setting `bootstrap.servers`."""
        return self._world.bootstrap

    @property
    def clock(self) -> MachineClock:
        """Return the clock of the code under test; producers use it by default."""
        return self._clock

    def events(self) -> list[tuple[float, str, str]]:
        """Return the events so far: (virtual seconds, place, description)."""
        return list(self._world.events)

    async def create_topic(
        self, name: str, partitions: int = 1, settings: Mapping[str, str] | None = None
    ) -> None:
        """Create a topic with a copy on every broker, at most three. Raises OttlaError."""
        copies = min(3, len(self._world.machines))
        topic = NewTopic(
            name=name,
            partitions=partitions,
            replication_factor=copies,
            config=dict(settings or {}),
        )
        async with Admin(self.bootstrap) as admin:
            await admin.topics.create_all([topic])

    async def advance(
        self, *, days: float = 0, hours: float = 0, minutes: float = 0, seconds: float = 0
    ) -> None:
        """Let time pass, for brokers and clients alike.

        Up to a quarter of an hour is simulated in full. Of a longer time, all clocks jump over the
        first part, and the last quarter of an hour is simulated. Retention, expiry and similar
        checks see the whole time.
        """
        whole_s = ((days * 24 + hours) * 60 + minutes) * 60 + seconds
        leap_s = max(0.0, whole_s - _LIVED_S)
        for clock in [self._clock, *(m.clock for m in self._world.machines.values())]:
            clock.skew_ms += int(leap_s * 1000)
        await asyncio.sleep(whole_s - leap_s)

    async def crash(self, broker: int, *, power: bool = False) -> None:
        """End a broker at once, as kill -9 does; with `power`, by a power cut of its machine."""
        machine = self._machine(broker)
        if power:
            machine.cut_power()
        else:
            machine.kill()
        await asyncio.sleep(0)

    async def stop(self, broker: int) -> None:
        """Stop a broker by a controlled shutdown."""
        await self._machine(broker).stop()

    async def start(self, broker: int) -> None:
        """Start a broker that is down, and wait until it is ready. Raises OttlaError."""
        machine = self._machine(broker)
        if not machine.is_running:
            machine.start()
        await self._until_ready(machine)

    def pause(self, broker: int) -> None:
        """Pause a broker's process, as SIGSTOP does."""
        self._machine(broker).pause()

    def resume(self, broker: int) -> None:
        """Continue a paused broker, as SIGCONT does."""
        self._machine(broker).resume()

    def partition(self, one: int | str, other: int | str, *, both_ways: bool = True) -> None:
        """Cut the network between two hosts: broker ids, `"clients"` or `"store"`.

        By default in both directions, else only from `one` to `other`.
        """
        pairs = [(one, other), (other, one)] if both_ways else [(one, other)]
        for source, target in pairs:
            self._cut(source, target)

    def heal(self) -> None:
        """End all network partitions and pauses. It does not start brokers that are down."""
        while self._world.cuts:
            self._world.cuts.pop()()
        for machine in self._world.machines.values():
            machine.resume()

    def _cut(self, source: int | str, target: int | str) -> None:
        if "store" in (source, target):
            broker = self._machine(target if source == "store" else source)
            self._world.store_faults.cut(broker.host)
            self._world.cuts.append(lambda: self._world.store_faults.heal(broker.host))
            return
        link = self._world.network.link(self._host(source), self._host(target))
        link.cut()
        self._world.cuts.append(link.heal)

    def _host(self, name: int | str) -> str:
        return _USER if name == "clients" else self._machine(name).host

    def _machine(self, broker: int | str) -> Machine:
        found = self._world.machines.get(int(broker)) if str(broker).isdigit() else None
        if found is None:
            known = ", ".join(map(str, self._world.machines))
            raise OttlaError(
                ErrorCode.INVALID_REQUEST, f"there is no broker {broker}; there are {known}"
            )
        return found

    async def _until_ready(self, machine: Machine) -> None:
        deadline_s = self._world.loop.time() + _PATIENCE_S
        while not machine.is_ready:
            if self._world.loop.time() > deadline_s:
                raise machine.start_failure or OttlaError(
                    ErrorCode.BROKER_NOT_AVAILABLE,
                    f"broker {machine.broker_id} does not start; can it reach the store?",
                )
            await asyncio.sleep(_LOOK_EVERY_S)


@asynccontextmanager
async def simulate(
    brokers: int = 1, settings: Mapping[str, str] | None = None
) -> AsyncIterator[SimulatedCluster]:
    """Run a simulated cluster on the current loop, which must be virtual: see `simulated`.

    `settings` are Kafka's broker settings by name. Raises OttlaError if the cluster cannot
    start, and AssertionError at the end if a broker met an unexpected error.
    """
    loop = asyncio.get_running_loop()
    if not isinstance(loop, VirtualLoop):
        raise OttlaError(
            ErrorCode.INVALID_REQUEST,
            "a simulated cluster lives in virtual time: put @ottla.testing.simulated() on the"
            " test, or run it with ottla.testing.run_virtual(...)",
        )
    world = World(loop, loop.seed)
    cluster = SimulatedCluster(world)
    user = world.process(_USER, _USER)
    tokens = PROCESS.set(user)
    set_current_clock(cluster.clock)
    set_chance(user.chance)
    try:
        for broker_id in range(1, brokers + 1):
            world.add_broker(broker_id, settings or {}).start()
        for broker_id in range(1, brokers + 1):
            await cluster.start(broker_id)
        yield cluster
        if world.failures:
            raise AssertionError("the cluster failed: " + "; ".join(world.failures))
    finally:
        PROCESS.reset(tokens)
        for machine in world.machines.values():
            machine.kill()
        user.tasks.clear()
        world.close()


def simulated(
    seed: int | str = 0,
) -> Callable[[Callable[Parameters, Coroutine[Any, Any, None]]], Callable[Parameters, None]]:
    """Turn an asynchronous test into an ordinary one, which runs it on a virtual event loop."""

    def decorate(
        test: Callable[Parameters, Coroutine[Any, Any, None]],
    ) -> Callable[Parameters, None]:
        @functools.wraps(test)
        def run(*args: Parameters.args, **named: Parameters.kwargs) -> None:
            run_virtual(test(*args, **named), seed)

        return run

    return decorate
