"""A simulated machine with one broker: its disk and clock outlive the broker's process."""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ottla.base.chance import set_chance
from ottla.base.clock import set_current_clock
from ottla.base.errors import OttlaError
from ottla.base.settings import BrokerSettings
from ottla.broker.process.broker import Broker
from ottla.testing.simulation.machine.disk import SimulatedDisk
from ottla.testing.simulation.machine.store import SimulatedStore
from ottla.testing.simulation.network.link import KERNEL
from ottla.testing.simulation.virtual.loop import MachineClock, VirtualLoop, resume
from ottla.testing.simulation.virtual.process import FAST_S, Process


class SimulatedWorker:
    """Implements `Worker`, one job at a time. Jobs not done are lost if the process is killed."""

    def __init__(self, loop: VirtualLoop, process: Process) -> None:
        self._loop = loop
        self._process = process
        self._free_at_s = 0.0
        # The jobs that are not done, oldest first, with their timers.
        self._jobs: deque[tuple[Callable[[], None], asyncio.TimerHandle]] = deque()

    def start(self, job: Callable[[], None], *, aside: bool = False) -> None:  # noqa: ARG002
        begin_s = max(self._loop.time(), self._free_at_s)
        self._free_at_s = begin_s + self._process.blocking_delay_s()
        timer = self._loop.call_at(self._free_at_s, self._do, context=self._process.context)
        self._jobs.append((job, timer))

    def run_all(self, jobs: Sequence[Callable[[], None]], *, aside: bool) -> None:  # noqa: ARG002
        for job in jobs:
            job()

    def close(self) -> None:
        while self._jobs:
            job, timer = self._jobs.popleft()
            timer.cancel()
            job()

    def _do(self) -> None:
        job, _ = self._jobs.popleft()
        job()


if TYPE_CHECKING:
    from ottla.testing.simulation.machine.world import World

_log = logging.getLogger(__name__)

PORT = 9092
_FOLDER = "/ottla"
# The pause before a broker that failed to start is started again, as by a supervisor.
_AGAIN_S = 1.0


class _SimulatedBroker(Broker):
    """A broker that reports to its machine once its parts exist, before any of them acts."""

    def __init__(self, machine: "Machine", *parts: Any, **named: Any) -> None:
        super().__init__(*parts, **named)
        self._machine = machine

    def _on_assembled(self) -> None:
        self._machine.on_assembled(self)


class Machine:
    """A machine that runs broker `broker_id`. Invariant: at most one of its processes is alive."""

    def __init__(self, world: "World", broker_id: int, settings: Mapping[str, str]) -> None:
        self._world = world
        self.broker_id = broker_id
        self.host = f"b{broker_id}"
        self.clock = MachineClock(world.loop)
        self.disk = SimulatedDisk(self.clock.now_ms)
        self.settings = {
            "node.id": str(broker_id),
            "listeners": f"PLAINTEXT://{self.host}:{PORT}",
            "log.dirs": _FOLDER,
            **settings,
        }
        self.process: Process | None = None
        self.broker: Broker | None = None
        self._store: SimulatedStore | None = None
        self.is_ready = False
        # The number of starts, and the error of the last start.
        self.starts = 0
        self.start_failure: OttlaError | None = None
        # When the last pause of its process began and ended, in the loop's seconds.
        self.last_pause = (-1.0, -1.0)
        self._paused_s = -1.0

    @property
    def bootstrap(self) -> str:
        return f"{self.host}:{PORT}"

    @property
    def is_running(self) -> bool:
        return self.process is not None and self.process.is_alive

    @property
    def is_paused(self) -> bool:
        """Whether its process is paused."""
        return self.process is not None and self.process.is_paused

    def fail(self, what: str) -> None:
        """Report a violated invariant on this machine to the world."""
        self._world.fail(what)

    def on_assembled(self, broker: Broker) -> None:
        """Pass a broker to the world before it starts; its parts exist by now."""
        self._world.on_assembled(self, broker)

    def start(self) -> None:
        """Start the broker; `is_ready` becomes true once clients can connect."""
        assert not self.is_running
        world = self._world
        world.network.switch_on(self.host)
        self.starts += 1
        process = self.process = world.process(f"{self.host}#{self.starts}", self.host)
        process.context.run(set_current_clock, self.clock)
        process.context.run(set_chance, process.chance)
        self._store = SimulatedStore(world.tree, process, world.store_faults, self.clock)
        worker = SimulatedWorker(world.loop, process)
        self.broker = process.context.run(self._make, self._store, worker)
        self.start_failure = None
        process.spawn(world.loop, self._start(self.broker))

    def _make(self, store: SimulatedStore, worker: SimulatedWorker) -> Broker:
        return _SimulatedBroker(
            self,
            BrokerSettings(self.settings),
            clock=self.clock,
            filesystem=self.disk,
            store=store,
            worker=worker,
        )

    async def _start(self, broker: Broker) -> None:
        try:
            await broker.start()
        except OttlaError as error:
            self._world.note(self.host, f"cannot start: {error.message}")
            self.start_failure = error
            self.kill()
            self._world.loop.call_later(_AGAIN_S, self._start_again, self.starts, context=KERNEL)
        except Exception as error:  # noqa: BLE001  # The supervisor of this start.
            self._world.fail(f"{self.host} failed to start: {error!r}")
            self.kill()
        else:
            self.is_ready = True
            self._world.note(self.host, "serves")

    def _start_again(self, starts: int) -> None:
        if self.starts == starts and not self.is_running:
            self.start()

    async def stop(self) -> None:
        """Stop the broker by a controlled shutdown, as on SIGTERM."""
        if self.broker is not None and self.is_running:
            self.is_ready = False
            assert self.process is not None
            process = self.process
            # If the caller stops waiting, the broker continues to stop.
            await asyncio.wait([process.spawn(self._world.loop, self.broker.stop())])
            if self.process is process:
                self.kill()

    def kill(self) -> None:
        """Kill the process; what it wrote remains in the page cache."""
        if self._end():
            self.disk.crash()

    def cut_power(self) -> None:
        """Cut the machine's power; most or all of the unflushed data is lost."""
        self._world.network.switch_off(self.host)
        self._end()
        self.disk.crash(self._world.chance_of(f"power/{self.host}/{self.starts}"))

    def _end(self) -> bool:
        process = self.process
        self.is_ready = False
        if process is None or not process.is_alive:
            return False
        if process.is_paused:
            self.resume()
        process.kill()
        if self._world.network.is_up(self.host):
            self._world.network.end_process(process)
            if self._world.sees_death and self._store is not None:
                self._store.end_session_soon()
        return True

    def has_unflushed(self) -> bool:
        """Whether a log has records that a power cut may lose."""
        return self.is_ready and any(
            partition.log.flush_state.recovery_point < partition.log_end_offset
            for partition in (self.broker.partitions if self.broker is not None else ())
        )

    def quicken(self) -> None:
        """Make the disk fast again."""
        if self.process is not None:
            self.process.blocking_s = FAST_S

    def pause(self) -> None:
        """Pause the process, as SIGSTOP does."""
        if self.is_running and self.process is not None:
            if not self.process.is_paused:
                self._paused_s = self._world.loop.time()
            self.process.is_paused = True
            self._world.store_faults.pause(self.host)

    def resume(self) -> None:
        """Continue the paused process, as SIGCONT does."""
        if self.process is not None and self.process.is_paused:
            self.last_pause = (self._paused_s, self._world.loop.time())
            resume(self._world.loop, self.process)
            self._world.store_faults.resume(self.host)
