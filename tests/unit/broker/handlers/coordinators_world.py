"""The coordinators of a broker of its own, in memory: real parts, and neither socket nor thread.

`play` runs a scenario with a new `World`. Broker 1 leads every partition; broker 2 is known, leads
what the scenario says, and never answers.
"""

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, cast
from uuid import UUID

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import BrokerId, TopicId
from ottla.base.settings import BrokerSettings
from ottla.broker.cluster.handshake import Credentials
from ottla.broker.cluster.links import Links
from ottla.broker.cluster.new_leaders import NewLeaders
from ottla.broker.cluster.peers import PeerLimits, Peers
from ottla.broker.groups import Groups
from ottla.broker.groups.rewinds import Rewinds
from ottla.broker.partitions.flush import Flusher
from ottla.broker.partitions.log_config import log_config
from ottla.broker.partitions.partition import Partition
from ottla.broker.partitions.partitions import Partitions
from ottla.broker.partitions.removals import Removals
from ottla.broker.produce.producer_ids import ProducerIdBlocks
from ottla.broker.replication.isr_writer import IsrWriter
from ottla.broker.replication.liveness import lag_limits
from ottla.broker.replication.roles import Roles
from ottla.broker.requests.handler import NO_ANSWER, Handler
from ottla.broker.requests.request import RequestContext
from ottla.broker.runtime.runtime import Runtime, new_runtime
from ottla.broker.runtime.view import ClusterView
from ottla.broker.share import SharePartitions
from ottla.broker.share.dead_letters import DeadLetterSender
from ottla.broker.share.group_settings import ShareGroupSettings
from ottla.broker.share.group_state import GroupShareStates
from ottla.broker.share.persister import AssignmentLookup, EndOffsets, Persister
from ottla.broker.share.states import ShareStates
from ottla.broker.topics.internal_topics import (
    CONSUMER_OFFSETS,
    SHARE_GROUP_STATE,
    TRANSACTION_STATE,
)
from ottla.broker.topics.topics import Topics
from ottla.broker.transactions import Transactions
from ottla.broker.transactions.marker_sender import MarkerSender, MarkerWriter
from ottla.broker.transactions.verification import AddPartitionsSender, Verifications
from ottla.broker.undo.changes import ChangeLog
from ottla.coordination.memory.memory import MemoryStore
from ottla.metadata.decisions import Decisions, Recorder
from ottla.metadata.image import BrokerImage, ClusterImage, Endpoint, PartitionImage, TopicImage
from ottla.network.known_client import KnownClient
from ottla.network.refusals import Refusals
from ottla.record.builder import BatchBuilder
from ottla.record.validation import Expansion, validate
from ottla.replica.registration import OwnRegistration, Registration
from ottla.storage.directory.log_directories import LogDirectories
from ottla.storage.disk.memory_filesystem import MemoryFileSystem
from ottla.testing.clock import ManualClock
from ottla.wire.frames import decode_response, encode_response

ONE, TWO = BrokerId(1), BrokerId(2)
SETTINGS = {
    "listeners": "PLAINTEXT://broker:9092",
    "log.dirs": "/data",
    "node.id": "1",
    "group.initial.rebalance.delay.ms": "0",
}
TOPIC_IDS = {
    name: TopicId(UUID(int=number))
    for number, name in enumerate(
        (CONSUMER_OFFSETS, TRANSACTION_STATE, SHARE_GROUP_STATE, "t", "u", "elsewhere"), 1
    )
}


class NoDialer:
    """No broker can be reached."""

    async def dial(self, host: str, port: int, *_: object) -> None:
        raise OttlaError(ErrorCode.BROKER_NOT_AVAILABLE, f"{host}:{port} cannot be reached")


class NoFetchers:
    """No partition is fetched from another broker."""

    def add(self, partition: Partition) -> None: ...

    def remove(self, partition: Partition) -> None: ...


class Connection(KnownClient):
    """A client's connection."""

    def __init__(self) -> None:
        super().__init__()
        self.on_lost: list[Callable[[], None]] = []
        self.peer_host, self.peer_port = "10.0.0.9", 4711
        self.refusals = Refusals(lambda: 0.0)


class Request:
    """A request as handlers see it, with its answer."""

    def __init__(self, version: int, connection: Connection | None = None) -> None:
        self.version = version
        self.client_id = "tester"
        self.client_host = "10.0.0.9"
        self.local_host = "broker"
        self.listener = "PLAINTEXT"
        self.connection = connection or Connection()
        self.throttle = None
        self.expansion = Expansion()
        self.access = None
        self.use = None
        self.answered: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    def reply(self, message: Any) -> None:
        assert not self.answered.done(), "answered twice"
        self.answered.set_result(message)

    def drop(self) -> None:
        """Finish without an answer."""
        self.answered.set_result(NO_ANSWER)

    def on_abandoned(self, callback: Callable[[], None]) -> None: ...


class InMemoryTopics:
    """Creates topics at once, as `Topics` does with the controller's help."""

    def __init__(self, world: "World") -> None:
        self._world = world

    async def auto_create(self, name: str) -> None:
        if self._world.view.image.topic(name) is None:
            await self._world.create(name)


class World:
    """The parts, wired as in a broker."""

    def __init__(self, loop: asyncio.AbstractEventLoop, settings: dict[str, str]) -> None:
        self.clock = ManualClock()
        self.settings = BrokerSettings({**SETTINGS, **settings})
        self.view = ClusterView(ONE, "cluster", _image())
        self.runtime: Runtime = new_runtime(self.clock, loop)
        self.store = MemoryStore()
        self.partitions = self._partitions(loop)
        own = Credentials(ONE, "cluster", b"secret", bytes, lambda: 1)
        self.peers = Peers(
            own, lambda: self.view.image, "PLAINTEXT", cast("Any", NoDialer()), PeerLimits()
        )
        self.topics = cast("Topics", InMemoryTopics(self))
        self.groups = Groups(self.view, self.runtime, self.settings, self.partitions)
        self.producer_ids = ProducerIdBlocks(self.store, ONE)
        self.changes = ChangeLog(self.store, self.clock)
        self.rewinds = Rewinds(self.changes, self.runtime.spawn)
        self._wire_transactions()
        self._wire_share()
        on_role = self.roles.on_role
        on_role.subscribe(self.groups.on_role)
        on_role.subscribe(self.transactions.on_role)
        on_role.subscribe(self.share_states.on_role)
        on_role.subscribe(self.sharing.on_role)

    def _partitions(self, loop: asyncio.AbstractEventLoop) -> Partitions:
        directories = LogDirectories(
            MemoryFileSystem(), ["/data"], cluster_id="cluster", node_id=ONE, flushes_first=True
        )
        registration = OwnRegistration(Registration(ONE, 1, 9_000))
        self.roles = Roles(
            registration,
            self.clock,
            Recorder(Decisions(), self.clock.now_ms),
            IsrWriter(self.store, self.clock, self.runtime.spawn),
            NoFetchers(),
            lag_limits(self.settings),
        )
        return Partitions(
            self.view,
            directories,
            Flusher(loop, self.clock, inline=True),
            self.clock,
            self.roles,
            group_commit=True,
            config_of=lambda topic: log_config(topic, self.settings),
            keeps_deleted=lambda: False,
            removals=Removals(loop, inline=True),
        )

    def _links(self) -> Links:
        return Links(self.peers, idle_ms=20_000)

    def _wire_transactions(self) -> None:
        self.marker_writer = MarkerWriter(self.partitions, self.groups)
        markers = MarkerSender(
            self.view, self.runtime, self.store, self.marker_writer, self._links()
        )
        self.transactions = Transactions(
            self.view, self.runtime, self.settings, self.partitions, self.producer_ids, markers
        )
        self.verifications = Verifications(
            AddPartitionsSender(
                self.view, self.runtime, self.settings, self.transactions, self._links()
            )
        )

    def _wire_share(self) -> None:
        self.share_states = ShareStates(self.view, self.runtime, self.settings, self.partitions)
        self.persister = Persister(
            self.view, self.runtime, self.topics, self.share_states, self._links()
        )
        self.group_settings = ShareGroupSettings(self.view, self.settings)
        self.group_state = GroupShareStates(self.groups, self.persister)
        self.end_offsets = EndOffsets(self.view, self.partitions, self.peers)
        self.new_leaders = NewLeaders(self.view, self.partitions)
        letters = DeadLetterSender(
            self.view, self.runtime, self.settings, self.partitions, self.topics, self._links()
        )
        self.sharing = SharePartitions(
            self.runtime,
            self.settings,
            self.partitions,
            self.group_settings,
            self.persister,
            AssignmentLookup(ONE, self.groups, self.peers),
            letters,
        )

    def lose(self, broker_id: BrokerId) -> None:
        """A broker is gone from the image."""
        image = self.view.image
        left = {each: broker for each, broker in image.brokers.items() if each != broker_id}
        self.view.replace(replace(image, brokers=left))

    async def create(self, *names: str, leader: BrokerId = ONE) -> None:
        """Make topics of one partition."""
        for name in names:
            state = PartitionImage(leader, 0, (leader,), (leader,), leader_broker_epoch=1)
            topic = TopicImage(name, TOPIC_IDS[name], (state,))
            self.view.replace(self.view.image.with_topic(topic))
            if leader == ONE:
                assert await self.partitions.order([(topic, 0, state)]) == {}

    def configure_group(self, group_id: str, **configs: str) -> None:
        """Set settings of a group."""
        own = {name.replace("_", "."): value for name, value in configs.items()}
        self.view.replace(self.view.image.with_group_configs(group_id, own))

    def write(self, topic: str, *values: bytes) -> None:
        """Append records to partition 0."""
        self.append(topic, BatchBuilder(), *values)

    def append(self, topic: str, builder: BatchBuilder, *values: bytes) -> None:
        """Append a batch to partition 0."""
        now_ms = self.clock.now_ms()
        for value in values:
            builder.append(now_ms, None, value)
        partition = self.partitions.get(topic, 0)
        batch = validate(memoryview(builder.build()), partition.config, now_ms)
        partition.append(batch.buffer, batch.header, now_ms)

    def begin(
        self, handler: Handler, body: Any, version: int, connection: Connection | None = None
    ) -> Request:
        """Give a request to a handler that answers later."""
        request = Request(version, connection)
        try:
            response = handler.handle(cast("RequestContext", request), body)
        except OttlaError as error:
            response = handler.on_error(body, error.code, error.message, version)
        if response is not None:
            request.reply(response)
        return request

    async def call(
        self, handler: Handler, body: Any, version: int, connection: Connection | None = None
    ) -> Any:
        """The response to a request, as a client reads it from the wire."""
        if inspect.iscoroutinefunction(handler.handle):
            request = Request(version, connection)
            try:
                answer = await handler.handle(cast("RequestContext", request), body)
            except OttlaError as error:
                answer = handler.on_error(body, error.code, error.message, version)
        else:
            answer = await self.begin(handler, body, version, connection).answered
        frame = b"".join(cast("Any", encode_response(answer, handler.api.key, version, 7)))
        return decode_response(handler.api.key, version, memoryview(frame)[4:])[1]


def play(
    scenario: Callable[[World], Awaitable[None]],
    *topics: str,
    settings: dict[str, str] | None = None,
) -> None:
    """Run a scenario in a new world in which `topics` exist."""

    async def main() -> None:
        world = World(asyncio.get_running_loop(), settings or {})
        await world.create(*topics)
        async with asyncio.timeout(60):
            await scenario(world)
        # Let tasks that were just begun get as far as they can be cancelled.
        await asyncio.sleep(0)
        await world.runtime.tasks.cancel()
        world.runtime.purgatory.close()

    asyncio.run(main())


def code(number: int) -> str:
    """The name of an error code."""
    return ErrorCode(number).name


def _image() -> ClusterImage:
    image = ClusterImage("cluster")
    for broker_id in (ONE, TWO):
        endpoints = {"PLAINTEXT": Endpoint(f"host{broker_id}", 9092)}
        image = image.with_broker(BrokerImage(broker_id, endpoints, None, 1))
    return image
