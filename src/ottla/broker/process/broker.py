"""The composition root: makes the parts of one broker, starts them in order, and stops them.

Order of start: the store, folders and their lock, the image as the store has it, listeners, the
registration; then the controller says what to host, and `start` returns when that is done. It
runs on whatever loop calls `start`, touches neither signals nor the loop's policy, and so can
live inside any process.
"""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TypeVar

from ottla.base.chance import new_random, random_bytes
from ottla.base.clock import Clock, SystemClock
from ottla.base.ids import BrokerId
from ottla.base.settings import BrokerSettings
from ottla.base.settings.listeners import inter_broker_listener
from ottla.broker.cleaning.cleaner import Cleaner
from ottla.broker.cluster.control import Control
from ottla.broker.cluster.controller_fence import ControllerFence
from ottla.broker.cluster.departed import Departed
from ottla.broker.cluster.endpoints import own_image
from ottla.broker.cluster.handshake import Credentials
from ottla.broker.cluster.membership import Membership
from ottla.broker.cluster.metadata_updates import MetadataUpdates
from ottla.broker.cluster.new_leaders import NewLeaders
from ottla.broker.cluster.orders import Orders
from ottla.broker.cluster.peers import PeerLimits, Peers
from ottla.broker.cluster.registration import (
    agree_on_cluster_id,
    known_cluster_id,
    name_cluster,
    new_cluster_id,
    prepare,
)
from ottla.broker.cluster.secret import agree_on_secret, new_secret
from ottla.broker.cluster.session_note import SessionNote
from ottla.broker.cluster.store_mark import StoreMark
from ottla.broker.configs.changes import ConfigChanges
from ottla.broker.configs.cluster_min_isr import agree_on_min_isr, initial_min_isr
from ottla.broker.configs.configs import Configs
from ottla.broker.controller import Controller
from ottla.broker.fetch.parts import FetchParts
from ottla.broker.fetch.sessions import FetchSessions
from ottla.broker.groups import Groups
from ottla.broker.partitions.failed_replicas import FailedReplicas
from ottla.broker.partitions.flush import Flusher, Worker
from ottla.broker.partitions.log_config import election_rules, log_config
from ottla.broker.partitions.own_standing import OwnStanding
from ottla.broker.partitions.partitions import Partitions
from ottla.broker.partitions.removals import Removals
from ottla.broker.partitions.strays import warn_of_strays
from ottla.broker.process.handing_over import hand_over
from ottla.broker.process.hosted import Hosted
from ottla.broker.process.maintenance import Maintenance
from ottla.broker.process.patience import patiently
from ottla.broker.process.scrubber import Scrubber
from ottla.broker.process.wiring import handlers
from ottla.broker.produce.parts import ProduceParts
from ottla.broker.produce.producer_ids import ProducerIds
from ottla.broker.replication.fetchers import Fetchers
from ottla.broker.replication.follower_session import fetch_limits
from ottla.broker.replication.following import Following
from ottla.broker.replication.isolation import Isolation
from ottla.broker.replication.isr_writer import IsrWriter
from ottla.broker.replication.lag_limits import lag_limits
from ottla.broker.replication.log_dir_moves import LogDirMoves
from ottla.broker.replication.recorder import Recorder
from ottla.broker.replication.replica_selector import RackAwareSelector
from ottla.broker.replication.replica_sessions import ReplicaSessions
from ottla.broker.replication.replication import Replication
from ottla.broker.replication.roles import Roles
from ottla.broker.replication.throttles import Throttles
from ottla.broker.requests.admission import Admission
from ottla.broker.requests.dispatch import Dispatcher
from ottla.broker.requests.features import Features
from ottla.broker.requests.listeners import Listeners
from ottla.broker.requests.quotas import Quotas
from ottla.broker.requests.readiness import Readiness
from ottla.broker.retention.keeper import RetentionKeeper
from ottla.broker.retention.readers import Readers
from ottla.broker.runtime.purgatory import Purgatory
from ottla.broker.runtime.runtime import Runtime, new_runtime
from ottla.broker.runtime.signal import Signal
from ottla.broker.runtime.view import ClusterView
from ottla.broker.share import Sharing
from ottla.broker.topics.topics import Topics
from ottla.broker.transactions import Transactions
from ottla.coordination.connect import connect
from ottla.coordination.memory import MemoryStore
from ottla.coordination.sqlite import SqliteStore
from ottla.coordination.store import Session, Store
from ottla.metadata.decisions import Decisions
from ottla.metadata.image import ClusterImage
from ottla.metadata.loader import load_image
from ottla.network.dialer import Dialer, LoopDialer
from ottla.replica.standing import Standing
from ottla.storage.directory.log_directories import LogDirectories
from ottla.storage.disk.errors import StorageError, storage_error
from ottla.storage.disk.filesystem import FileSystem, OsFileSystem

_log = logging.getLogger(__name__)

_SESSION_EVICTION_MS = 120_000
_PATIENCE_S = 2.0
# How long a broker that leads nothing any more answers before it hangs up.
_FAREWELL_S = 0.05
_PING_INTERVAL_MS = 10_000
_STORE_FILE = "ottla-store.sqlite"

T = TypeVar("T")


class Broker:
    """One broker. `await start()`, serve, `await stop()`; it is not started twice.

    `image` is replaced as a whole, never changed.
    """

    view: ClusterView
    runtime: Runtime
    store: Store
    log_directories: LogDirectories
    partitions: Partitions
    topics: Topics
    configs: Configs
    quotas: Quotas
    features: Features
    groups: Groups
    transactions: Transactions
    sharing: Sharing
    producer_ids: ProducerIds
    replication: Replication
    purgatory: Purgatory
    listeners: Listeners
    flusher: Flusher
    admission: Admission
    peers: Peers
    updates: MetadataUpdates
    controller: Controller
    membership: Membership
    config_changes: ConfigChanges
    cleaner: Cleaner
    retention: RetentionKeeper
    scrubber: Scrubber
    maintenance: Maintenance
    removals: Removals
    loop: asyncio.AbstractEventLoop

    def __init__(
        self,
        settings: BrokerSettings,
        *,
        clock: Clock | None = None,
        filesystem: FileSystem | None = None,
        store: Store | None = None,
        rng: random.Random | None = None,
        worker: Worker | None = None,
        dialer: Dialer | None = None,
    ) -> None:
        self.settings = settings
        self.clock: Clock = clock or SystemClock()
        self.filesystem: FileSystem = filesystem or OsFileSystem()
        self.broker_id = BrokerId(settings.broker_id)
        self.group_commit = settings.text("log.flush.policy") == "group"
        self._given_store = store
        self._worker = worker
        self._dialer = dialer or LoopDialer(settings.integer("broker.session.timeout.ms"))
        self.inter_broker_listener = inter_broker_listener(settings)
        self._rng = rng or new_random()
        self.fetch_sessions = FetchSessions(
            settings.integer("max.incremental.fetch.session.cache.slots"),
            _SESSION_EVICTION_MS,
            self._rng,
        )
        # Where the store is the broker's own to open; whoever passes one answers for it.
        self.store_mark: StoreMark | None = None
        self.decisions = Decisions()
        self.fence = ControllerFence()
        # Emitted when the registration is lost: what this broker leads, it leads no more (S16).
        self.registration_lost: Signal[[]] = Signal()
        # Emitted when no other broker can be reached: this broker gives its registration up.
        self.isolated: Signal[[]] = Signal()
        self.readiness = Readiness()
        # Who points consumers to nearer replicas, where that is wanted.
        self.replica_selector: RackAwareSelector | None = None

    @property
    def cluster_id(self) -> str:
        return self.view.cluster_id

    @property
    def image(self) -> ClusterImage:
        return self.view.image

    @property
    def port(self) -> int:
        """Port of the first listener."""
        return self.listeners.port

    @property
    def ports(self) -> dict[str, int]:
        """Ports by the names of their listeners."""
        return self.listeners.ports

    async def start(self) -> None:
        """Serve. Raises OttlaError with cause and remedy where it cannot; then all is closed."""
        self.loop = asyncio.get_running_loop()
        self.runtime = new_runtime(self.clock, self.loop)
        self.spawn = self.runtime.spawn
        try:
            await self._open_store()
            self._assemble()
            await self._load()
            await self.listeners.start()
            await self._register()
            self.groups.start()
            self.transactions.start()
            self.sharing.start()
        except BaseException:
            await self.stop(clean=False)
            raise
        self.replication.start()
        self.maintenance.start()
        self.scrubber.start()
        self.cleaner.start()
        self.readiness.begin()
        if self.store_mark is not None:
            self.spawn(self.store_mark.keep())
        for note in self.settings.notes:
            _log.info("%s", note)

    async def stop(self, *, clean: bool = True, hands_over: bool = True) -> None:
        """Stop serving, flush and close. Not clean: without the flush, as after a crash.

        `hands_over` is False where all brokers stop, and nobody is to go on.
        """
        if hasattr(self, "membership"):
            self.membership.retire()
        if clean:
            if hands_over:
                await self._hand_over()
            elif hasattr(self, "controller"):
                # What becomes of the others is nobody's business any more.
                self.controller.stop()
            await self._answer_who_waits()
        if hasattr(self, "listeners"):
            await self.listeners.stop()
        await self.runtime.tasks.cancel()
        if hasattr(self, "controller"):
            await self._stop_upkeep()
            self.controller.stop()
            self.config_changes.stop()
            self.topics.close()
        if hasattr(self, "replication"):
            self.replication.close()
        if hasattr(self, "peers"):
            self.peers.close()
        self._close_coordinators()
        if hasattr(self, "partitions"):
            self._close_logs(clean=clean)
            self.purgatory.close()
        await self._leave()

    async def _leave(self) -> None:
        if hasattr(self, "store"):
            if hasattr(self, "membership"):
                await self.membership.leave()
            if self._given_store is None:
                await self.store.close()

    async def _stop_upkeep(self) -> None:
        await self.cleaner.stop()
        self.retention.readers.close()
        await self.maintenance.stop()
        await self.scrubber.stop()
        self.removals.close()

    async def _answer_who_waits(self) -> None:
        """Flush what is appended, so that its producers learn of it before they are cut off."""
        try:
            await asyncio.wait_for(self.flusher.settle(), _PATIENCE_S)
        except TimeoutError:
            _log.warning("the disk does not answer: stopping without waiting for it")
        # The answers leave in the next turn.
        await asyncio.sleep(0)
        await asyncio.sleep(0)

    async def _open_store(self) -> None:
        paths = self.settings.log_dirs
        self.store = self._given_store or await self._default_store()
        if self._given_store is None and not self.filesystem.in_memory:
            self.store_mark = StoreMark(self.filesystem, paths[0], self.store, self._run_in_thread)
        found = LogDirectories.find_cluster_id(self.filesystem, paths)
        # Another cluster's store is refused as that, by its id.
        if self.store_mark and await known_cluster_id(self.store) in (None, found):
            await self.store_mark.check()
        proposed = found or new_cluster_id(random_bytes)
        beginning = [
            name_cluster(proposed),
            new_secret(random_bytes),
            initial_min_isr(self.settings),
        ]
        await self._patiently(lambda: prepare(self.store, beginning))
        cluster_id = await self._patiently(lambda: agree_on_cluster_id(self.store, proposed))
        self.view = ClusterView(self.broker_id, cluster_id)
        self._meet(await self._patiently(lambda: agree_on_secret(self.store, random_bytes)))
        now_ms = self.clock.now_ms()
        await self._patiently(lambda: agree_on_min_isr(self.store, self.settings, now_ms))
        self.log_directories = LogDirectories(
            self.filesystem,
            paths,
            cluster_id=self.cluster_id,
            node_id=self.broker_id,
            producer_expiration_ms=self.settings.integer("producer.id.expiration.ms"),
            flushes_first=self.group_commit,
        )

    async def _run_in_thread(self, work: Callable[[], None]) -> None:
        await self.loop.run_in_executor(None, work)

    async def _patiently(self, action: Callable[[], Awaitable[T]]) -> T:
        limit_ms = self.settings.integer("broker.session.timeout.ms")
        return await patiently(action, self.clock, limit_ms)

    def _meet(self, secret: bytes) -> None:
        """Make what this broker knows other brokers by."""
        settings = self.settings
        idle_ms = settings.integer("connections.max.idle.ms")
        own = Credentials(
            self.broker_id,
            self.cluster_id,
            secret,
            random_bytes,
            lambda: self.fence.broker_epoch,
        )
        self.admission = Admission(own, lambda: self.image)
        self.peers = Peers(
            own,
            lambda: self.image,
            self.inter_broker_listener,
            self._dialer,
            PeerLimits(
                connect_timeout_ms=settings.integer("socket.connection.setup.timeout.ms"),
                ping_interval_ms=_ping_interval_ms(idle_ms),
            ),
        )

    async def _default_store(self) -> Store:
        """Where the settings say; else a file in the first log directory, or memory like that."""
        address = self.settings.text("coordination.connect")
        if address:
            return await connect(
                address,
                user=self.settings.text("coordination.user"),
                password=self.settings.text("coordination.password"),
            )
        if self.filesystem.in_memory:
            return MemoryStore()
        folder = self.settings.log_dirs[0]
        try:
            self.filesystem.mkdir(folder)
        except OSError as error:
            raise storage_error(error, folder, "make the log directory") from error
        return await SqliteStore.open(f"{folder}/{_STORE_FILE}")

    def _assemble(self) -> None:
        self.purgatory = self.runtime.purgatory
        self.flusher = Flusher(
            self.loop, self.clock, inline=self.log_directories.in_memory, worker=self._worker
        )
        self.removals = Removals(self.loop, inline=self.log_directories.in_memory)
        settings = self.settings
        self._assemble_replication()
        if settings.value("replica.selector.class") is not None:
            self.replica_selector = RackAwareSelector(lambda: self.image)
        self.groups = Groups(self.settings, self.clock, self.purgatory, self.partitions, self)
        self._assemble_upkeep()
        self.transactions = Transactions(self)
        self.departed = Departed()
        self.sharing = Sharing(self)
        on_role = self.replication.roles.on_role
        on_role.subscribe(self.groups.on_role)
        on_role.subscribe(self.transactions.on_role)
        on_role.subscribe(self.sharing.on_role)
        hosted = Hosted(self.replication, self.partitions, self.groups)
        self.producer_ids = ProducerIds(self.store, self.broker_id)
        image_changed: Signal[[]] = Signal()
        image_changed.subscribe(self._on_image)
        self.updates = MetadataUpdates(self.view, self.store, self.fence, hosted, image_changed)
        self.orders = Orders(self.view, self.fence, self.partitions, self.updates)
        self.topics = Topics(self.view, self.store, self.settings, self.updates)
        self._assemble_controller()
        self.configs = Configs(
            self.view,
            self.updates,
            self.store,
            self.settings,
            hosted,
            self.clock,
            self.controller.on_rules_changed,
        )
        self.quotas = Quotas(self.settings, self.store, self.clock, self.loop)
        self.features = Features(self.view, self.updates, self.store, self.clock)
        on_changed = self.features.before(self.quotas.before(self.configs.on_changed))
        self.config_changes = ConfigChanges(self.store, self.clock, on_changed)
        self.new_leaders = NewLeaders(self.view, self.partitions)
        self.produce_parts = ProduceParts(self.runtime, self.partitions, self.new_leaders)
        self.fetch_parts = FetchParts(
            self.settings, self.runtime, self.partitions, self.fetch_sessions, self.new_leaders
        )
        dispatcher = Dispatcher(
            handlers(self),
            self.runtime,
            self.readiness,
            self.quotas,
            self.produce_parts,
            self.fetch_parts,
        )
        self.listeners = Listeners(self.settings, self.quotas.connections, dispatcher.service)

    def _assemble_replication(self) -> None:
        settings, clock, spawn = self.settings, self.clock, self.spawn
        directories, removals = self.log_directories, self.removals
        limits = lag_limits(settings)
        session_ms = settings.integer("broker.session.timeout.ms")
        self.own_standing = own = OwnStanding(Standing(self.broker_id, 0, session_ms))
        throttles = Throttles(settings, clock)
        recorder = Recorder(self.decisions, clock)
        following = Following(
            directories,
            own,
            recorder,
            throttles.follower,
            clock,
            spawn,
            removals,
            retry_ms_max=settings.integer("replica.fetch.backoff.ms"),
        )
        fetchers = Fetchers(
            self.peers,
            following,
            fetch_limits(settings),
            clock,
            spawn,
            per_source=settings.integer("num.replica.fetchers"),
        )
        isr_writer = IsrWriter(self.store, clock, spawn)
        roles = Roles(own, clock, recorder, isr_writer, fetchers, limits)
        self.partitions = partitions = Partitions(
            directories,
            self.flusher,
            clock,
            roles,
            group_commit=self.group_commit,
            config_of=lambda topic: log_config(topic, settings),
            removals=removals,
            image=lambda: self.view.image,
        )
        failed_replicas = FailedReplicas(self.store, self.broker_id, spawn)
        partitions.on_failed.subscribe(failed_replicas.tell)
        moves = LogDirMoves(partitions, directories, throttles.moves, clock, spawn, removals)
        sessions = ReplicaSessions(
            partitions,
            roles,
            throttles.leader,
            self._rng,
            news_are_urgent=settings.value("replica.selector.class") is not None,
        )
        isolation = Isolation(sessions, self.peers, clock, spawn, self.isolated, limits)
        self.replication = Replication(
            clock,
            own,
            roles,
            fetchers,
            partitions,
            sessions,
            moves,
            throttles,
            isolation,
            limits,
        )

    def _assemble_upkeep(self) -> None:
        settings, runtime, partitions = self.settings, self.runtime, self.partitions
        directories, flusher = self.log_directories, self.flusher
        self.cleaner = Cleaner(settings, runtime, partitions, directories, flusher, self.removals)
        readers = Readers(self.view, self.clock, self.groups, self.peers)
        self.retention = RetentionKeeper(self.view, runtime, self.decisions, self.removals, readers)
        self.scrubber = Scrubber(settings, runtime, partitions, directories)
        self.maintenance = Maintenance(
            settings,
            runtime,
            partitions,
            directories,
            flusher,
            self.retention,
            self.store_mark,
        )

    def _assemble_controller(self) -> None:
        control = Control(self.broker_id, self.peers, self.orders)
        self.controller = Controller(
            self.store,
            self.broker_id,
            self.settings,
            self.clock,
            self.decisions,
            lambda topic: election_rules(topic, self.image, self.settings),
            control.deliver,
            control.reaches,
            control.answers,
            self.isolated.emit,
        )
        self.peers.on_lost.subscribe(self.controller.suspect)
        self.membership = Membership(
            self.store,
            self.fence,
            self.clock,
            self.settings.integer("broker.session.timeout.ms"),
            self.filesystem.page_cache_id(self.settings.log_dirs[0]),
            note=SessionNote(self.filesystem, self.settings.log_dirs[0]),
            on_lost=self.registration_lost.emit,
            on_joined=self._on_joined,
        )
        membership = self.membership
        self.registration_lost.subscribe(self.replication.on_unregistered)
        self.registration_lost.subscribe(self.controller.stand_down)
        self.isolated.subscribe(lambda: self.spawn(membership.withdraw()))

    def _on_image(self) -> None:
        self.departed.on_image(self.image.brokers, self.clock.monotonic_ms())
        self.peers.on_image()
        self.transactions.on_image()

    async def _on_joined(self, session: Session) -> None:
        """A registration has begun: roles come with it, from a controller, perhaps this one."""
        session_ms = self.settings.integer("broker.session.timeout.ms")
        standing = Standing(self.broker_id, self.fence.broker_epoch, session_ms)
        self.replication.on_registered(standing, session)
        await self.controller.start(session)

    async def _load(self) -> None:
        await self._patiently(self.config_changes.start)
        loaded = await self._patiently(lambda: load_image(self.store, self.cluster_id))
        # Until the controller tells more: what is in the store, led by whoever it was.
        self.updates.show(loaded.image)
        warn_of_strays(self.log_directories.found_at_start, self.image)
        self.configs.load()
        await self._patiently(self.quotas.load)
        self.config_changes.follow()
        for deletion in self.log_directories.leftovers():
            self.removals.remove_later(deletion)

    async def _register(self) -> None:
        """Announce the broker, with the ports it has now, and wait to hear what it hosts."""
        image = own_image(self.broker_id, self.settings, self.listeners.ports)
        clean = self.log_directories.kept_all
        epoch = await self.membership.join(image, clean=clean)
        if not clean:
            await self.loop.run_in_executor(None, self.log_directories.confirm_run)
        self.updates.show(self.view.image.with_broker(replace(image, epoch=epoch)))
        if not await self.updates.wait_for(lambda _image: self.updates.heard, _PATIENCE_S):
            _log.warning("no controller has told this broker yet what it hosts; it serves anyway")

    def _close_coordinators(self) -> None:
        if hasattr(self, "groups"):
            self.groups.close()
        if hasattr(self, "transactions"):
            self.transactions.close()
        if hasattr(self, "sharing"):
            self.sharing.close()

    async def _hand_over(self) -> None:
        """Have the controller move away what this broker leads, before it stops (P30)."""
        if not hasattr(self, "controller") or len(self.image.brokers) < 2:
            return
        if self.settings.flag("controlled.shutdown.enable"):
            await hand_over(self.view, self.fence, self.controller, self.peers)
            # Whoever comes meanwhile is told where to go; what a connection's end leaves
            # unanswered, clients first try here again.
            await asyncio.sleep(_FAREWELL_S)

    def _close_logs(self, *, clean: bool) -> None:
        self.flusher.close()
        high_watermarks = {
            partition.topic_partition: partition.high_watermark for partition in self.partitions
        }
        self.partitions.close()
        try:
            self.log_directories.close(high_watermarks, clean=clean, now_ms=self.clock.now_ms())
        except StorageError as error:
            _log.error("closing the logs: %s", error.message)


def _ping_interval_ms(idle_ms: int) -> int:
    """So often that the other broker, of like settings, takes no connection for idle."""
    return min(_PING_INTERVAL_MS, max(1, idle_ms // 3)) if idle_ms > 0 else _PING_INTERVAL_MS
