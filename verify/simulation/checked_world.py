"""A world whose brokers are judged, and in which programs copy in transactions."""

from ottla.broker.process.broker import Broker
from ottla.testing.simulation.machine.machine import Machine
from ottla.testing.simulation.machine.world import World
from ottla.testing.simulation.virtual.loop import VirtualLoop
from verify.simulation.copying import Copying
from verify.simulation.judging.punctual import BrokerWatch


class CheckedWorld(World):
    """The world of one run that is judged."""

    def __init__(self, loop: VirtualLoop, seed: int | str) -> None:
        super().__init__(loop, seed)
        # The copiers in transactions, where there are any.
        self.copying: Copying | None = None

    def on_assembled(self, machine: Machine, broker: Broker) -> None:
        """Watch the broker's leaders from their first moment on."""
        BrokerWatch(machine, broker.parts.replication, machine.fail)
