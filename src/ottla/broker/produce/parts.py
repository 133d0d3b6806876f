"""The parts of a broker that the fast path of Produce needs."""

from dataclasses import dataclass

from ottla.broker.cluster.new_leaders import NewLeaders
from ottla.broker.partitions.partitions import Partitions
from ottla.broker.produce.expansion import Turns
from ottla.broker.runtime.runtime import Runtime


@dataclass(frozen=True, slots=True)
class ProduceParts:
    """Shared by the fast paths of all connections and by waiting answers."""

    runtime: Runtime
    partitions: Partitions
    new_leaders: NewLeaders
    turns: Turns
