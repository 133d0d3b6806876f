"""One simulated world: a loop, a network, a store, machines with brokers, and clients."""

import contextlib
import json
import warnings
from collections import Counter
from collections.abc import Callable, Mapping
from random import Random

from ottla.base.chance import set_chance
from ottla.base.clock import set_current_clock
from ottla.broker.process.broker import Broker
from ottla.coordination.memory.faults import StoreFaults
from ottla.coordination.memory.memory import MemoryTree
from ottla.testing.simulation.machine.machine import Machine
from ottla.testing.simulation.network.network import Network
from ottla.testing.simulation.virtual.loop import MachineClock, VirtualLoop
from ottla.testing.simulation.virtual.process import Process

OFFSETS = "__consumer_offsets"
STATE = "__transaction_state"
OFFSETS_PARTITIONS = 2
# Settings of every simulated broker, so that little waiting is simulated.
SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": str(OFFSETS_PARTITIONS),
    "transaction.state.log.num.partitions": str(OFFSETS_PARTITIONS),
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
}


class World:
    """All parts, made from one seed. Used on its loop only."""

    def __init__(self, loop: VirtualLoop, seed: int | str) -> None:
        self.loop = loop
        self.seed = seed
        self.network = Network(loop, seed)
        self.tree = MemoryTree()
        self.store_faults = StoreFaults(self.chance_of("store"))
        self.machines: dict[int, Machine] = {}
        self.processes: list[Process] = []
        # Whether a process's death is seen at once (embedded store), or when its lease ends.
        self.sees_death = True
        self._is_closed = False
        # How to undo the faults of a test.
        self.cuts: list[Callable[[], None]] = []
        # What happened, for people: seconds, where, what.
        self.events: list[tuple[float, str, str]] = []
        # Unexpected errors of our code.
        self.failures: list[str] = []
        # How often something worth reaching was reached.
        self.sometimes: Counter[str] = Counter()
        loop.set_exception_handler(lambda _loop, what: self._on_unhandled(what))

    def chance_of(self, purpose: str) -> Random:
        """Chance for one purpose; drawing from one leaves the others as they are."""
        return Random(f"{self.seed}/{purpose}")

    def process(self, name: str, host: str) -> Process:
        """A new process on a host."""
        number = len(self.processes) + 1
        process = Process(name, host, number, self.chance_of(f"process/{name}"))
        self.processes.append(process)
        return process

    def user_process(self, name: str) -> Process:
        """A process for clients, on a host of its own, with a clock and chance of its own."""
        return self.another_process(name, name)

    def another_process(self, name: str, host: str) -> Process:
        """A new process for clients on a host where others may be."""
        process = self.process(name, host)
        process.context.run(set_current_clock, MachineClock(self.loop))
        process.context.run(set_chance, process.chance)
        return process

    def add_broker(self, broker_id: int, settings: Mapping[str, str]) -> Machine:
        """A machine with a broker that is not started yet."""
        machine = Machine(self, broker_id, {**SETTINGS, **settings})
        self.machines[broker_id] = machine
        return machine

    @property
    def bootstrap(self) -> list[str]:
        """What clients call `bootstrap.servers`."""
        return [machine.bootstrap for machine in self.machines.values()]

    def on_assembled(self, machine: Machine, broker: Broker) -> None:
        """Look at a broker before it starts, where a world judges its brokers."""

    def note(self, where: str, what: str) -> None:
        """Remember an event."""
        self.events.append((self.loop.time(), where, what))
        self.loop.note(f"{where} {what}".encode())

    def count(self, what: str) -> None:
        """Something happened that a run is there to reach."""
        self.sometimes[what] += 1

    @property
    def user_hosts(self) -> list[str]:
        """The hosts of clients, in the order they came."""
        brokers = {machine.host for machine in self.machines.values()}
        return list(dict.fromkeys(p.host for p in self.processes if p.host not in brokers))

    def leader_of(self, partition: int, topic: str = "t") -> Machine | None:
        """The machine that leads a partition, of the workload's topic if nothing else is said."""
        return self._machine_of(f"/brokers/topics/{topic}/partitions/{partition}/state", "leader")

    def coordinator_of_transactions(self, index: int) -> Machine | None:
        """The machine that coordinates some of the transactional ids, as the store has it."""
        path = f"/brokers/topics/{STATE}/partitions/{index % OFFSETS_PARTITIONS}/state"
        return self._machine_of(path, "leader")

    def controller(self) -> Machine | None:
        """The machine of the controller, as the store has it."""
        return self._machine_of("/controller", "brokerid")

    def _machine_of(self, path: str, field: str) -> Machine | None:
        entry = self.tree.entries.get(path)
        return None if entry is None else self.machines.get(json.loads(entry.data)[field])

    def fail(self, what: str) -> None:
        """Something happened that must not."""
        if not self._is_closed and what not in self.failures:
            self.failures.append(what)
            self.note("!", what)

    def close(self) -> None:
        """End what still stands, so that nothing of it acts later."""
        self._is_closed = True
        for process in self.processes:
            process.is_alive = False
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            for process in self.processes:
                for task in list(process.tasks):
                    coroutine = task.get_coro()
                    with contextlib.suppress(BaseException):
                        coroutine.close()
                process.tasks.clear()

    def _on_unhandled(self, what: dict[str, object]) -> None:
        error = what.get("exception")
        self.fail(f"unhandled: {what.get('message')}: {error!r}")
