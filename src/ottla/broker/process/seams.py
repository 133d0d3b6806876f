"""The clock, disk, network and store of a broker; tests and the simulation replace them."""

import random
from dataclasses import dataclass

from ottla.base.clock import Clock
from ottla.broker.partitions.flush import Worker
from ottla.coordination.interface.store import Store
from ottla.network.dialer import Dialer
from ottla.storage.disk.filesystem import FileSystem


@dataclass(frozen=True, slots=True)
class Seams:
    """`store` None: the broker opens its own and closes it. `worker` None: a thread flushes."""

    clock: Clock
    filesystem: FileSystem
    rng: random.Random
    dialer: Dialer
    store: Store | None
    worker: Worker | None
