"""The parts of broker 1 that hold replicas: real ones, in memory, without a socket."""

import asyncio
import inspect
from types import SimpleNamespace
from uuid import UUID

from ottla.base.errors import OttlaError
from ottla.base.ids import BrokerId, TopicId
from ottla.base.settings import BrokerSettings
from ottla.broker.cluster.admission import PeerIdentity
from ottla.broker.cluster.controller_fence import ControllerFence
from ottla.broker.cluster.metadata_updates import MetadataUpdates
from ottla.broker.cluster.orders import Orders
from ottla.broker.partitions.flush import Flusher
from ottla.broker.partitions.log_config import log_config
from ottla.broker.partitions.partitions import Partitions
from ottla.broker.partitions.removals import Removals
from ottla.broker.replication.isr_writer import IsrWriter
from ottla.broker.replication.liveness import lag_limits
from ottla.broker.replication.roles import Roles
from ottla.broker.requests.request import RequestContext
from ottla.broker.runtime.runtime import new_runtime
from ottla.broker.runtime.signal import Signal
from ottla.broker.runtime.view import ClusterView
from ottla.coordination.memory.memory import MemoryStore
from ottla.metadata.decisions import Decisions, Recorder
from ottla.metadata.image import BrokerImage, ClusterImage, Endpoint, PartitionImage, TopicImage
from ottla.network.refusals import Refusals
from ottla.record.builder import build_batch
from ottla.record.header import read_header
from ottla.replica.registration import OwnRegistration, Registration
from ottla.security.principal import ANONYMOUS
from ottla.storage.directory.log_directories import LogDirectories
from ottla.storage.disk.memory_filesystem import MemoryFileSystem
from ottla.testing.clock import ManualClock
from ottla.wire.frames import RequestHeader, decode_response

SETTINGS = {"listeners": "PLAINTEXT://127.0.0.1:0", "log.dirs": "/data", "node.id": "1"}
OWN = BrokerId(1)
CLUSTER = "cluster"
BROKER_EPOCH = 7


class NoFetchers:
    """Knows which partitions follow; fetches nothing."""

    def __init__(self):
        self.followed = []

    def add(self, partition):
        self.followed.append(partition)

    def remove(self, partition):
        self.followed.remove(partition)


class Hosting:
    """Brings the partitions in step with an image."""

    def __init__(self, partitions):
        self._partitions = partitions

    async def apply(self, image):
        await self._partitions.apply(image)

    def update_configs(self, image):
        self._partitions.update_configs(image)


class World:
    """Broker 1, registered with epoch 7. It leads or follows as the test orders."""

    def __init__(
        self, settings=None, *, broker_epoch=BROKER_EPOCH, filesystem=None, group_commit=False
    ):
        self.settings = BrokerSettings({**SETTINGS, **(settings or {})})
        self.clock = ManualClock()
        self.runtime = new_runtime(self.clock, asyncio.get_running_loop())
        self.view = ClusterView(OWN, CLUSTER, ClusterImage(CLUSTER))
        self.filesystem = filesystem or MemoryFileSystem()
        self.store = MemoryStore()
        self.directories = LogDirectories(
            self.filesystem,
            self.settings.log_dirs,
            cluster_id=CLUSTER,
            node_id=1,
            flushes_first=group_commit,
        )
        inline = self.filesystem.in_memory
        self.flusher = Flusher(self.runtime.loop, self.clock, inline=inline)
        self.removals = Removals(self.runtime.loop, inline=True)
        self.own = OwnRegistration(Registration(OWN, broker_epoch, 18_000))
        self.fetchers = NoFetchers()
        self.decisions = Decisions()
        self.roles = Roles(
            self.own,
            self.clock,
            Recorder(self.decisions, self.clock.now_ms),
            IsrWriter(self.store, self.clock, self.runtime.spawn),
            self.fetchers,
            lag_limits(self.settings),
        )
        self.partitions = Partitions(
            self.view,
            self.directories,
            self.flusher,
            self.clock,
            self.roles,
            group_commit=group_commit,
            config_of=lambda topic: log_config(topic, self.settings),
            removals=self.removals,
            keeps_deleted=lambda: self.settings.integer("delete.topic.trash.ms") > 0,
        )
        self.fence = ControllerFence()
        self.fence.registered(broker_epoch)
        self.updates = MetadataUpdates(
            self.view, self.store, self.fence, Hosting(self.partitions), Signal()
        )
        self.orders = Orders(self.view, self.fence, self.partitions, self.updates)

    async def close(self):
        self.partitions.close()
        await self.runtime.tasks.cancel()
        self.runtime.purgatory.close()
        self.flusher.close()
        self.removals.close()
        self.directories.close({}, clean=False)
        await self.store.close()

    async def host(self, name, number, *, leader=1, replicas=(1,), isr=None, epoch=5, configs=None):
        """A topic of one partition in the view, its role taken; the partition."""
        state = PartitionImage(
            leader=BrokerId(leader),
            leader_epoch=epoch,
            replicas=tuple(replicas),
            isr=tuple(isr or replicas),
            leader_broker_epoch=BROKER_EPOCH,
        )
        topic = TopicImage(name, TopicId(UUID(int=number)), (state,), configs or {})
        self.view.replace(self.view.image.with_topic(topic))
        failed = await self.partitions.order([(topic, 0, state)])
        assert not failed, failed
        return self.partitions.get(name, 0)

    async def turn(self):
        """Let the loop do what is due now."""
        await asyncio.sleep(0)
        await asyncio.sleep(0)

    def know(self, *brokers):
        """Show brokers as alive, each with its id as its epoch."""
        image = self.view.image
        for broker in brokers:
            endpoints = {"PLAINTEXT": Endpoint(f"host{broker}", 9092)}
            image = image.with_broker(BrokerImage(BrokerId(broker), endpoints, epoch=broker))
        self.view.replace(image)
        self.own.current.live = {broker.id: broker.epoch for broker in image.brokers.values()}

    def append(self, partition, *values, timestamps=None):
        """One batch of records; its first offset."""
        times = timestamps or [self.clock.now_ms()] * len(values)
        batch = build_batch(times, [None] * len(values), list(values))
        return partition.append(batch, read_header(batch), self.clock.now_ms()).base_offset


class Line:
    """The end of a connection: `identity` is what a handshake proved, replies are kept."""

    peer_host, peer_port, local_host = "10.0.0.9", 4711, "10.0.0.1"
    closed = False

    def __init__(self, broker_id=None):
        self.identity = None
        self.principal = ANONYMOUS
        self.by_token = False
        self.software = self.software_version = ""
        self.refusals = Refusals(lambda: 0.0)
        self.answered = asyncio.Event()
        self.sent = []
        if broker_id is not None:
            self.identity = PeerIdentity()
            self.identity.receiver = SimpleNamespace(proven=SimpleNamespace(broker_id=broker_id))

    def defer(self, _size):
        return _Place(self)


class _Place:
    def __init__(self, line):
        self._line = line
        self.on_abandoned = None

    def answer(self, parts):
        self._line.sent.append(parts)
        self._line.answered.set()


class Asked:
    """A request for `handler`, from a client or, with `broker`, from a proven broker."""

    def __init__(
        self, handler, body, version=None, *, broker=None, line=None, listener="PLAINTEXT"
    ):
        version = handler.api.versions.max if version is None else version
        self.line = line or Line(broker)
        self.line.answered.clear()
        self._place = len(self.line.sent)
        self._key, self._version = handler.api.key, version
        header = RequestHeader(handler.api.key, version, 3, "tester")
        self.context = RequestContext(header, self.line, listener, 0, 100)

    def answers(self):
        """What was replied later, decoded."""
        sent = self.line.sent[self._place :]
        return [decode_response(self._key, self._version, _frame(parts))[1] for parts in sent]


def _frame(parts):
    return memoryview(b"".join(bytes(part) for part in parts))[4:]


def ask(handler, body, version=None, *, broker=None):
    """What `handler` returns to the request; a coroutine where it is one."""
    return handler.handle(Asked(handler, body, version, broker=broker).context, body)


async def begin(handler, body, version=None, **client):
    """Serve a request as the dispatcher does; its answer may come later, see `Asked.answers`."""
    asked = Asked(handler, body, version, **client)
    context = asked.context
    try:
        answer = handler.handle(context, body)
        if inspect.isawaitable(answer):
            answer = await answer
    except OttlaError as error:
        answer = handler.on_error(body, error.code, error.message, context.version)
    if answer is not None:
        context.reply(answer)
    early = context.settle()
    if early is not None:
        asked.line.sent.append(early)
        asked.line.answered.set()
    return asked


async def call(handler, body, version=None, **client):
    """The answer to a request, as its client reads it from the wire."""
    asked = await begin(handler, body, version, **client)
    await asked.line.answered.wait()
    (answer,) = asked.answers()
    return answer


def play(scenario, settings=None, *, kind=World):
    """Run `scenario(world)` in a world of that kind."""

    async def main():
        world = kind(settings)
        try:
            await scenario(world)
        finally:
            await world.close()

    asyncio.run(asyncio.wait_for(main(), 120))
