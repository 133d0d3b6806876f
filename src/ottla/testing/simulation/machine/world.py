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
# Settings of every simulated broker that shorten waits.
SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": str(OFFSETS_PARTITIONS),
    "transaction.state.log.num.partitions": str(OFFSETS_PARTITIONS),
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
}


class World:
    """All parts of a simulated world, made from one seed. Used only on its loop."""

    def __init__(self, loop: VirtualLoop, seed: int | str) -> None:
        self.loop = loop
        self.seed = seed
        self.network = Network(loop, seed)
        self.tree = MemoryTree()
        self.store_faults = StoreFaults(self.chance_of("store"))
        self.machines: dict[int, Machine] = {}
        self.processes: list[Process] = []
        # Whether the store notices a process's death at once (embedded), or when its lease ends.
        self.sees_death = True
        self._is_closed = False
        # Functions that undo the faults of a test.
        self.cuts: list[Callable[[], None]] = []
        # The events for people: seconds, place, description.
        self.events: list[tuple[float, str, str]] = []
        # Unexpected errors of Ottla's code.
        self.failures: list[str] = []
        # How often each rare state that a test wants to reach was reached.
        self.sometimes: Counter[str] = Counter()
        loop.set_exception_handler(lambda _loop, what: self._on_unhandled(what))

    def chance_of(self, purpose: str) -> Random:
        """Return the random source of one purpose; drawing from it affects no other source."""
        return Random(f"{self.seed}/{purpose}")

    def process(self, name: str, host: str) -> Process:
        """Return a new process on a host."""
        number = len(self.processes) + 1
        process = Process(name, host, number, self.chance_of(f"process/{name}"))
        self.processes.append(process)
        return process

    def user_process(self, name: str) -> Process:
        """Return a process for clients, with its own host, clock and random source."""
        return self.another_process(name, name)

    def another_process(self, name: str, host: str) -> Process:
        """Return a new process for clients, on a host that may have other processes."""
        process = self.process(name, host)
        process.context.run(set_current_clock, MachineClock(self.loop))
        process.context.run(set_chance, process.chance)
        return process

    def add_broker(self, broker_id: int, settings: Mapping[str, str]) -> Machine:
        """Add a machine with a broker that is not started yet."""
        machine = Machine(self, broker_id, {**SETTINGS, **settings})
        self.machines[broker_id] = machine
        return machine

    @property
    def bootstrap(self) -> list[str]:
        """Return the addresses for the clients' setting `bootstrap.servers`."""
        return [machine.bootstrap for machine in self.machines.values()]

    def on_assembled(self, machine: Machine, broker: Broker) -> None:
        """Called for each broker before it starts; worlds that check brokers override it."""

    def note(self, where: str, what: str) -> None:
        """Remember an event."""
        self.events.append((self.loop.time(), where, what))
        self.loop.note(f"{where} {what}".encode())

    def count(self, what: str) -> None:
        """Count a rare state that a test wants to reach."""
        self.sometimes[what] += 1

    @property
    def user_hosts(self) -> list[str]:
        """Return the hosts of clients, in the order of their creation."""
        brokers = {machine.host for machine in self.machines.values()}
        return list(dict.fromkeys(p.host for p in self.processes if p.host not in brokers))

    def leader_of(self, partition: int, topic: str = "t") -> Machine | None:
        """Return the machine that leads a partition; the default topic is the workload's."""
        return self._machine_of(f"/brokers/topics/{topic}/partitions/{partition}/state", "leader")

    def coordinator_of_transactions(self, index: int) -> Machine | None:
        """Return the coordinator of some transactional ids, according to the store."""
        path = f"/brokers/topics/{STATE}/partitions/{index % OFFSETS_PARTITIONS}/state"
        return self._machine_of(path, "leader")

    def controller(self) -> Machine | None:
        """Return the controller's machine, according to the store."""
        return self._machine_of("/controller", "brokerid")

    def _machine_of(self, path: str, field: str) -> Machine | None:
        entry = self.tree.entries.get(path)
        return None if entry is None else self.machines.get(json.loads(entry.data)[field])

    def fail(self, what: str) -> None:
        """Report that an invariant was violated."""
        if not self._is_closed and what not in self.failures:
            self.failures.append(what)
            self.note("!", what)

    def close(self) -> None:
        """End all processes, so that none of their tasks runs later."""
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
