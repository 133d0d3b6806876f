"""A whole broker without sockets or threads, and scenes of produce requests for it.

`play` runs scenes against a new broker and returns what can be seen of it. Time is virtual and
chance is seeded: two plays of the same scenes differ only where the broker's code does.
"""

import asyncio
import logging
import struct
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from random import Random
from typing import Any
from uuid import UUID

from ottla.base.chance import set_chance
from ottla.base.clock import set_current_clock
from ottla.base.settings import BrokerSettings
from ottla.broker.handlers.produce import Produce
from ottla.broker.partitions.partition import Partition
from ottla.broker.process.broker import Broker
from ottla.broker.produce.shortcut import ProduceShortcuts
from ottla.coordination.memory.memory import MemoryStore
from ottla.metadata.topic_plan import RequestedTopic
from ottla.network.connection import Connection
from ottla.storage.disk.memory_filesystem import MemoryFileSystem
from ottla.storage.producers import snapshot
from ottla.testing.simulation.network.network import Network
from ottla.testing.simulation.virtual.loop import BEGINNING_MS, MachineClock, VirtualLoop
from ottla.testing.simulation.virtual.process import Process
from ottla.wire.frames import encode_request
from ottla.wire.notation import Message

NOW_MS = BEGINNING_MS
# Topics that are there besides those of the scenes.
SHARED = ("other", "__consumer_offsets")
_HOST = "broker"
_FOLDER = "/logs"
# In virtual seconds. Requests that are unanswered after the first wait for something that the scene
# has to do; the second is longer than any request's own timeout.
_PATIENCE_S = 0.1
_TIMEOUT_S = 100.0


@dataclass(frozen=True)
class Ask:
    """One produce request for one partition; `None` for `topic` is the topic of the scene."""

    records: bytes | None
    topic: str | None = None
    partition: int = 0
    # Where it differs from its scene.
    acks: int | None = None
    version: int | None = None
    timeout_ms: int = 60_000
    transactional_id: str | None = None
    client_id: str | None = "test"
    # More partitions of the same request: topic (None as above), index, records.
    more: tuple[tuple[str | None, int, bytes], ...] = ()
    # Changes the encoded frame, which comes without its size.
    spoil: Callable[[bytes], bytes] = bytes


Change = Callable[["World"], Awaitable[None] | None]
Step = Ask | Change


@dataclass(frozen=True)
class Scene:
    """What one connection sends, and what happens meanwhile, to a topic of its own."""

    name: str
    steps: Sequence[Step]
    # Whether such a request was served before on the connection.
    learnt: bool = True
    version: int = 9
    acks: int = -1
    # Whether the requests between two changes come with one receive.
    together: bool = False
    first: bytes = b""


@dataclass
class Seen:
    """What can be seen of a play."""

    # Of each scene: the bytes that its connection was sent, and whether it was closed.
    answers: list[tuple[bytes, bool]]
    # Of each topic: offsets, producers and those of them that are in doubt.
    states: list[tuple[object, ...]]
    # Every file after an orderly stop.
    files: dict[str, bytes]
    # The operator's log, from warnings on.
    lines: list[str]


@dataclass
class Taken:
    """How many requests, and how many runs of them, the fast path served."""

    alone: int = 0
    together: int = 0


class _Transport(asyncio.Transport):
    """Keeps what is written."""

    def __init__(self) -> None:
        super().__init__({"peername": ("10.0.0.9", 4711), "sockname": ("10.0.0.1", 9092)})
        self.written = bytearray()
        self.is_closed = False

    def write(self, data: Any) -> None:
        self.written += data

    def get_write_buffer_size(self) -> int:
        return 0

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...

    def is_closing(self) -> bool:
        return self.is_closed

    def abort(self) -> None:
        self.is_closed = True

    def close(self) -> None:
        self.is_closed = True


class World:
    """The broker of one play. The one place that knows how a broker is made and reached."""

    def __init__(self, loop: VirtualLoop, settings: dict[str, str]) -> None:
        self.loop = loop
        self.filesystem = MemoryFileSystem()
        self.broker = Broker(
            BrokerSettings(
                {
                    "listeners": f"PLAINTEXT://{_HOST}:9092",
                    "log.dirs": _FOLDER,
                    "node.id": "1",
                    "auto.create.topics.enable": "false",
                    **settings,
                }
            ),
            clock=MachineClock(loop),
            filesystem=self.filesystem,
            store=MemoryStore(),
        )
        self.topic = ""
        self._transport = _Transport()
        self._correlation_id = 0

    def connect(self) -> Connection:
        """A new connection of the broker's listener."""
        self._transport = _Transport()
        connection = Connection(self.broker.serving.listeners.open[0], self.loop)
        connection.connection_made(self._transport)
        self._connection = connection
        return connection

    @property
    def partition(self) -> Partition:
        """The partition that the scene is about."""
        return self.broker.partitions.get(self.topic, 0)

    async def create(self, *names: str) -> None:
        """Make topics, whose settings and one partition are the default ones."""
        wanted = [RequestedTopic(name, 1, 1) for name in names]
        for outcome in await self.broker.parts.metadata.topics.create(wanted):
            assert outcome.error is None, outcome.error

    async def delete(self, name: str) -> None:
        await self.broker.parts.metadata.topics.delete([self.broker.image.topics[name]])

    def configure(self, **settings: Any) -> None:
        """Change settings of the scene's log, by their names in `LogConfig`."""
        log = self.partition.log
        log.update_config(replace(log.config, **settings))

    def hold_flushes(self) -> None:
        """Flush nothing of the scene's partition any more."""
        self.partition._flusher = _NoFlusher()  # type: ignore[assignment]

    def frame(self, ask: Ask, scene: Scene) -> bytes:
        """A request with its size before it."""
        version = scene.version if ask.version is None else ask.version
        # As the table of APIs declares them, also where a test replaced the declaration.
        declared = Produce.api.request
        partition_type = element_of(element_of(declared, "topic_data"), "partition_data")
        topics: dict[str, list[Any]] = {}
        wanted = ((ask.topic, ask.partition, ask.records), *ask.more)
        for topic, index, records in wanted:
            data = partition_type(index=index, records=records)
            topics.setdefault(topic or self.topic, []).append(data)
        request = declared(
            transactional_id=ask.transactional_id,
            acks=scene.acks if ask.acks is None else ask.acks,
            timeout_ms=ask.timeout_ms,
            topic_data=[self._topic_data(*each, version) for each in topics.items()],
        )
        self._correlation_id += 1
        parts = encode_request(request, version, self._correlation_id, ask.client_id)
        frame = ask.spoil(b"".join(bytes(part) for part in parts)[4:])
        return struct.pack(">i", len(frame)) + frame

    def _topic_data(self, name: str, partitions: list[Any], version: int) -> Message:
        topic_type = element_of(Produce.api.request, "topic_data")
        if version < 13:
            return topic_type(name=name, partition_data=partitions)
        found = self.broker.image.topics.get(name)
        unknown = Random(name).getrandbits(128).to_bytes(16, "big")
        topic_id = UUID(bytes=unknown) if found is None else found.id
        return topic_type(topic_id=topic_id, partition_data=partitions)

    async def receive(self, received: bytes) -> None:
        """Let the connection receive these bytes at once, and wait until all is answered."""
        connection = self._connection
        if connection.closed:
            return
        buffer = connection.get_buffer(-1)
        assert len(received) <= len(buffer)
        buffer[: len(received)] = received
        connection.buffer_updated(len(received))
        await self.settle()

    async def settle(self, limit_s: float = _PATIENCE_S) -> None:
        """Let the loop turn until all is answered, for so long (in virtual time) at most."""
        for _ in range(5):
            await asyncio.sleep(0)
        until_s = self.loop.time() + limit_s
        while self._is_waiting() and self.loop.time() < until_s:  # noqa: ASYNC110
            await asyncio.sleep(0.001)
        for _ in range(5):
            await asyncio.sleep(0)

    def _is_waiting(self) -> bool:
        return self._connection.unanswered > 0 and not self._connection.closed

    async def act(self, scene: Scene) -> tuple[bytes, bool]:
        """Play one scene; what its connection was sent, and whether it was closed."""
        connection = self.connect()
        if scene.learnt:
            await self.receive(self.frame(Ask(scene.first), scene))
        pending: list[bytes] = []
        for step in scene.steps:
            if isinstance(step, Ask):
                pending.append(self.frame(step, scene))
                if scene.together:
                    continue
            if pending:
                await self.receive(b"".join(pending))
                pending.clear()
            if not isinstance(step, Ask):
                done = step(self)
                if done is not None:
                    await done
        if pending:
            await self.receive(b"".join(pending))
        self.filesystem.capacity_bytes = None
        await self.settle(_TIMEOUT_S)
        closed = connection.closed
        if not closed:
            connection.connection_lost(None)
        return bytes(self._transport.written), closed

    def state(self) -> tuple[object, ...]:
        """What the scene's partition holds in memory."""
        try:
            partition = self.partition
        except Exception as error:  # noqa: BLE001  # Deleted: that is its state.
            return (repr(error),)
        log = partition.log
        doubts = partition.gaps._doubts
        return (
            partition.high_watermark,
            log.log_start_offset,
            log.log_end_offset,
            log.log_end_offset - log.flush_state.recovery_point,
            snapshot.encode(log.producers.packed()),
            [
                (key, each.producer_epoch, each.refused, each.code, each.sent_back)
                for key, each in doubts.items()
            ],
        )


def element_of(message: type[Message], name: str) -> type[Message]:
    """The class of the elements of an array."""
    (found,) = (field.element for field in message.__fields__ if field.name == name)
    assert issubclass(found, Message)
    return found


class _NoFlusher:
    def mark_dirty(self, partition: object) -> None: ...

    def hurry(self) -> None: ...

    def forget(self, partition: object) -> None: ...


class _Lines(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


def play(scenes: Sequence[Scene], settings: dict[str, str] | None = None) -> Seen:
    """Play the scenes one after the other against one broker."""
    loop = VirtualLoop(1)
    Network(loop, 1)
    process = Process("broker", _HOST, 1, Random(1))
    process.context.run(set_current_clock, MachineClock(loop))
    process.context.run(set_chance, process.chance)
    told = _Lines()
    log = logging.getLogger("ottla")
    log.addHandler(told)
    propagates, log.propagate = log.propagate, False
    try:
        return loop.run_until_complete(
            process.spawn(loop, _play(loop, scenes, settings or {}, told))
        )
    finally:
        log.propagate = propagates
        log.removeHandler(told)
        loop.close()


async def _play(
    loop: VirtualLoop, scenes: Sequence[Scene], settings: dict[str, str], told: _Lines
) -> Seen:
    world = World(loop, settings)
    await world.broker.start()
    answers, states = [], []
    topics = [f"t{number}" for number in range(len(scenes))]
    await world.create(*topics, *SHARED)
    for world.topic, scene in zip(topics, scenes, strict=True):
        answers.append(await world.act(scene))
        states.append(world.state())
    await world.broker.stop()
    return Seen(answers, states, dict(_files(world.filesystem, _FOLDER)), told.lines)


def _files(filesystem: MemoryFileSystem, path: str) -> Iterator[tuple[str, bytes]]:
    for name in filesystem.listdir(path):
        below = f"{path}/{name}"
        if filesystem.is_directory(below):
            yield from _files(filesystem, below)
        else:
            yield below, filesystem.read_bytes(below)


@contextmanager
def slow_path_only() -> Iterator[None]:
    """Let connections learn nothing: each request takes the slow path."""
    learn = ProduceShortcuts.learn
    ProduceShortcuts.learn = lambda *_arguments: None  # type: ignore[method-assign]
    try:
        yield
    finally:
        ProduceShortcuts.learn = learn  # type: ignore[method-assign]


@contextmanager
def counted() -> Iterator[Taken]:
    """Count what the fast path serves."""
    taken = Taken()
    serve, serve_run = ProduceShortcuts.serve, ProduceShortcuts.serve_run

    def counting(self: ProduceShortcuts, frame: memoryview) -> Any:
        parts = serve(self, frame)
        taken.alone += parts is not None
        return parts

    def counting_run(self: ProduceShortcuts, received: memoryview, count_max: int) -> Any:
        served = serve_run(self, received, count_max)
        taken.together += served is not None
        return served

    ProduceShortcuts.serve = counting  # type: ignore[method-assign]
    ProduceShortcuts.serve_run = counting_run  # type: ignore[method-assign]
    try:
        yield taken
    finally:
        ProduceShortcuts.serve = serve  # type: ignore[method-assign]
        ProduceShortcuts.serve_run = serve_run  # type: ignore[method-assign]
