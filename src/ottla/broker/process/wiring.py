"""Builds the parts of a broker from the bottom up, and subscribes them to each other's events."""

from typing import NamedTuple

from ottla.base.chance import random_bytes
from ottla.base.ids import BrokerId
from ottla.base.settings import BrokerSettings
from ottla.base.settings.listeners import inter_broker_listener
from ottla.broker.access.acls import Acls, new_authorizer
from ottla.broker.access.gate import Gate
from ottla.broker.audit.audit import Audit, new_audit
from ottla.broker.cleaning.cleaner import Cleaner
from ottla.broker.cluster.admission import Admission
from ottla.broker.cluster.control import Control
from ottla.broker.cluster.controller_fence import ControllerFence
from ottla.broker.cluster.departed import Departed
from ottla.broker.cluster.handshake import Credentials
from ottla.broker.cluster.links import Links, idle_ms
from ottla.broker.cluster.membership import BrokerMembership
from ottla.broker.cluster.metadata_updates import MetadataUpdates
from ottla.broker.cluster.new_leaders import NewLeaders
from ottla.broker.cluster.orders import Orders
from ottla.broker.cluster.peer_login import broker_identity
from ottla.broker.cluster.peers import PeerLimits, Peers
from ottla.broker.cluster.session_note import SessionNote
from ottla.broker.configs.changes import ConfigChanges
from ottla.broker.configs.configs import Configs
from ottla.broker.configs.features import Features
from ottla.broker.configs.reading_all import reading_all
from ottla.broker.controller import Controller
from ottla.broker.fetch.parts import FetchParts
from ottla.broker.fetch.sessions import FetchSessions
from ottla.broker.groups import Groups
from ottla.broker.login.logins import Logins
from ottla.broker.login.tokens import DelegationTokens, new_tokens
from ottla.broker.login.users import ScramUsers
from ottla.broker.partitions.failed_replicas import FailedReplicas
from ottla.broker.partitions.flush import Flusher
from ottla.broker.partitions.log_config import election_rules, log_config
from ottla.broker.partitions.own_standing import OwnStanding
from ottla.broker.partitions.partitions import Partitions
from ottla.broker.partitions.removals import Removals
from ottla.broker.process.apis import handlers
from ottla.broker.process.hosted import Hosted
from ottla.broker.process.joining import Joining
from ottla.broker.process.maintenance import Maintenance
from ottla.broker.process.opening import Opened
from ottla.broker.process.parts import Parts
from ottla.broker.process.scrubber import Scrubber
from ottla.broker.process.seams import Seams
from ottla.broker.produce.expanding import Turns
from ottla.broker.produce.parts import ProduceParts
from ottla.broker.produce.producer_ids import ProducerIdBlocks
from ottla.broker.quotas.quotas import Quotas
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
from ottla.broker.retention.keeper import RetentionKeeper
from ottla.broker.retention.readers import Readers, StartOffset
from ottla.broker.runtime.runtime import Runtime
from ottla.broker.runtime.signal import Signal
from ottla.broker.runtime.view import ClusterView
from ottla.broker.serving.dispatch import Dispatcher
from ottla.broker.serving.listeners import Listeners
from ottla.broker.serving.readiness import Readiness
from ottla.broker.share import Sharing
from ottla.broker.share.assignment_lookup import AssignmentLookup
from ottla.broker.share.dead_letter_sender import DeadLetterSender
from ottla.broker.share.group_settings import ShareGroupSettings
from ottla.broker.share.group_state import GroupShareStates
from ottla.broker.share.persister import Persister
from ottla.broker.share.states import ShareStates
from ottla.broker.topics.topics import Topics
from ottla.broker.transactions import Transactions
from ottla.broker.transactions.add_partitions_sender import AddPartitionsSender
from ottla.broker.transactions.marker_sender import MarkerSender
from ottla.broker.transactions.marker_writer import MarkerWriter
from ottla.broker.transactions.verification import Verifications
from ottla.metadata.decisions import Decisions
from ottla.replica.standing import Standing

_SESSION_EVICTION_MS = 120_000
_PING_INTERVAL_MS = 10_000


class Meeting(NamedTuple):
    """The handshakes in which this broker and the others prove their identity."""

    admission: Admission
    peers: Peers


class Replicas(NamedTuple):
    """The partitions of this broker, and their replication."""

    own_standing: OwnStanding
    partitions: Partitions
    replication: Replication


class Transacting(NamedTuple):
    """The transaction coordinator, and what leaders of partitions need for transactions."""

    marker_writer: MarkerWriter
    marker_sender: MarkerSender
    transactions: Transactions
    add_partitions_sender: AddPartitionsSender
    verifications: Verifications


class ShareParts(NamedTuple):
    """The parts of share groups, besides their membership."""

    share_states: ShareStates
    persister: Persister
    share_group_settings: ShareGroupSettings
    share_group_state: GroupShareStates
    dead_letters: DeadLetterSender
    sharing: Sharing


class Upkeep(NamedTuple):
    """The parts that work beside requests."""

    cleaner: Cleaner
    retention: RetentionKeeper
    scrubber: Scrubber
    maintenance: Maintenance


class Settings(NamedTuple):
    """Settings, quotas and features that change while the broker runs."""

    configs: Configs
    quotas: Quotas
    acls: Acls | None
    users: ScramUsers
    tokens: DelegationTokens | None
    audit: Audit | None
    features: Features
    config_changes: ConfigChanges


def wire(settings: BrokerSettings, seams: Seams, runtime: Runtime, opened: Opened) -> Parts:
    """All parts of a broker whose storage is open; nothing of it runs yet."""
    return _Wiring(settings, seams, runtime, opened).parts()


def listeners(parts: Parts) -> Listeners:
    """The broker's listeners, with a handler for each API behind them."""
    acls = parts.acls
    gate = None if acls is None else Gate(acls.authorizer, parts.view, parts.settings)
    dispatcher = Dispatcher(
        handlers(parts),
        parts.runtime,
        parts.readiness,
        parts.quotas,
        parts.produce,
        parts.fetch,
        gate,
        Logins(parts.settings, parts.users, parts.tokens, parts.runtime, parts.audit),
        parts.audit,
    )
    return Listeners(parts.settings, parts.quotas.connections, dispatcher.service, parts.audit)


class _Wiring:
    """The arguments that most parts take."""

    def __init__(
        self, settings: BrokerSettings, seams: Seams, runtime: Runtime, opened: Opened
    ) -> None:
        self.settings = settings
        self.seams = seams
        self.runtime = runtime
        self.opened = opened
        self.store = opened.store
        self.directories = opened.log_directories
        self.view = ClusterView(BrokerId(settings.broker_id), opened.cluster_id)
        self.fence = ControllerFence()
        self.decisions = Decisions()
        # Emitted when the registration is lost: this broker then leads nothing more (S16).
        self.registration_lost: Signal[[]] = Signal()
        # Emitted when no other broker can be reached: this broker gives its registration up.
        self.isolated: Signal[[]] = Signal()
        self.image_changed: Signal[[]] = Signal()

    def parts(self) -> Parts:
        settings, runtime, view, store = self.settings, self.runtime, self.view, self.store
        meeting = self._meeting()
        inline = self.directories.in_memory
        flusher = Flusher(runtime.loop, runtime.clock, inline=inline, worker=self.seams.worker)
        removals = Removals(runtime.loop, inline=inline)
        replicas = self._replicas(meeting.peers, flusher, removals)
        partitions, replication = replicas.partitions, replicas.replication
        groups = Groups(view, runtime, settings, partitions)
        producer_ids = ProducerIdBlocks(store, view.broker_id)
        transacting = self._transacting(meeting.peers, partitions, groups, producer_ids)
        hosted = Hosted(replication, partitions, groups)
        updates = MetadataUpdates(view, store, self.fence, hosted, self.image_changed)
        orders = Orders(view, self.fence, partitions, updates)
        topics = Topics(view, store, settings, updates)
        share = self._share(meeting.peers, partitions, groups, topics)
        controller = self._controller(meeting.peers, orders)
        membership = self._membership(replication, controller)
        changing = self._changing(updates, hosted, controller)
        start_offset = share.persister.start_offset
        upkeep = self._upkeep(meeting.peers, replicas, flusher, removals, groups, start_offset)
        departed = Departed()
        new_leaders = NewLeaders(view, partitions)
        fetch_sessions = FetchSessions(
            settings.integer("max.incremental.fetch.session.cache.slots"),
            _SESSION_EVICTION_MS,
            self.seams.rng,
        )
        parts = Parts(
            settings=settings,
            filesystem=self.seams.filesystem,
            runtime=runtime,
            view=view,
            store=store,
            store_mark=self.opened.store_mark,
            log_directories=self.directories,
            decisions=self.decisions,
            fence=self.fence,
            readiness=Readiness(),
            registration_lost=self.registration_lost,
            isolated=self.isolated,
            admission=meeting.admission,
            peers=meeting.peers,
            flusher=flusher,
            removals=removals,
            own_standing=replicas.own_standing,
            partitions=replicas.partitions,
            replication=replicas.replication,
            replica_selector=self._replica_selector(),
            groups=groups,
            producer_ids=producer_ids,
            marker_writer=transacting.marker_writer,
            marker_sender=transacting.marker_sender,
            transactions=transacting.transactions,
            add_partitions_sender=transacting.add_partitions_sender,
            verifications=transacting.verifications,
            departed=departed,
            updates=updates,
            orders=orders,
            topics=topics,
            controller=controller,
            membership=membership,
            configs=changing.configs,
            quotas=changing.quotas,
            acls=changing.acls,
            users=changing.users,
            tokens=changing.tokens,
            audit=changing.audit,
            features=changing.features,
            config_changes=changing.config_changes,
            share_states=share.share_states,
            persister=share.persister,
            share_group_settings=share.share_group_settings,
            share_group_state=share.share_group_state,
            dead_letters=share.dead_letters,
            sharing=share.sharing,
            cleaner=upkeep.cleaner,
            retention=upkeep.retention,
            scrubber=upkeep.scrubber,
            maintenance=upkeep.maintenance,
            new_leaders=new_leaders,
            produce=ProduceParts(runtime, partitions, new_leaders, Turns(runtime.clock)),
            fetch=FetchParts(settings, runtime, partitions, fetch_sessions, new_leaders),
        )
        self._subscribe(parts)
        return parts

    def _subscribe(self, parts: Parts) -> None:
        """Subscribe parts to the events of others."""
        on_role = parts.replication.roles.on_role
        on_role.subscribe(parts.groups.on_role)
        on_role.subscribe(parts.transactions.on_role)
        on_role.subscribe(parts.share_states.on_role)
        on_role.subscribe(parts.sharing.on_role)
        failed_replicas = FailedReplicas(self.store, self.view.broker_id, self.runtime.spawn)
        parts.partitions.on_failed.subscribe(failed_replicas.tell)
        parts.peers.on_lost.subscribe(parts.controller.suspect)
        self.registration_lost.subscribe(parts.replication.on_unregistered)
        self.registration_lost.subscribe(parts.controller.stand_down)
        self.isolated.subscribe(lambda: self.runtime.spawn(parts.membership.withdraw()))
        monotonic_ms = self.runtime.clock.monotonic_ms
        self.image_changed.subscribe(
            lambda: parts.departed.on_image(self.view.image.brokers, monotonic_ms())
        )
        self.image_changed.subscribe(parts.peers.on_image)
        self.image_changed.subscribe(parts.marker_sender.on_image)
        self.image_changed.subscribe(parts.add_partitions_sender.on_image)

    def _meeting(self) -> Meeting:
        settings, view = self.settings, self.view
        own = Credentials(
            view.broker_id,
            view.cluster_id,
            self.opened.secret,
            random_bytes,
            lambda: self.fence.broker_epoch,
        )
        limits = PeerLimits(
            connect_timeout_ms=settings.integer("socket.connection.setup.timeout.ms"),
            ping_interval_ms=_ping_interval_ms(settings.integer("connections.max.idle.ms")),
        )
        listener = inter_broker_listener(settings)
        return Meeting(
            Admission(own, lambda: view.image),
            Peers(
                own,
                lambda: view.image,
                listener,
                self.seams.dialer,
                limits,
                broker_identity(settings),
            ),
        )

    def _replicas(self, peers: Peers, flusher: Flusher, removals: Removals) -> Replicas:
        settings, clock, spawn = self.settings, self.runtime.clock, self.runtime.spawn
        limits = lag_limits(settings)
        session_ms = settings.integer("broker.session.timeout.ms")
        own = OwnStanding(Standing(self.view.broker_id, 0, session_ms))
        throttles = Throttles(settings, clock)
        recorder = Recorder(self.decisions, clock)
        following = Following(
            self.directories,
            own,
            recorder,
            throttles.follower,
            clock,
            spawn,
            removals,
            retry_ms_max=settings.integer("replica.fetch.backoff.ms"),
        )
        fetchers = Fetchers(
            peers,
            following,
            fetch_limits(settings),
            clock,
            spawn,
            per_source=settings.integer("num.replica.fetchers"),
        )
        roles = Roles(own, clock, recorder, IsrWriter(self.store, clock, spawn), fetchers, limits)
        partitions = Partitions(
            self.view,
            self.directories,
            flusher,
            clock,
            roles,
            group_commit=settings.text("log.flush.policy") == "group",
            config_of=lambda topic: log_config(topic, settings),
            removals=removals,
        )
        sessions = ReplicaSessions(
            partitions,
            roles,
            throttles.leader,
            self.seams.rng,
            news_are_urgent=settings.value("replica.selector.class") is not None,
        )
        replication = Replication(
            clock,
            own,
            roles,
            fetchers,
            partitions,
            sessions,
            LogDirMoves(partitions, self.directories, throttles.moves, clock, spawn, removals),
            throttles,
            Isolation(sessions, peers, clock, spawn, self.isolated, limits),
            limits,
        )
        return Replicas(own, partitions, replication)

    def _replica_selector(self) -> RackAwareSelector | None:
        if self.settings.value("replica.selector.class") is None:
            return None
        return RackAwareSelector(self.view)

    def _links(self, peers: Peers) -> Links:
        return Links(peers, idle_ms=idle_ms(self.settings))

    def _transacting(
        self, peers: Peers, partitions: Partitions, groups: Groups, producer_ids: ProducerIdBlocks
    ) -> Transacting:
        view, runtime, settings = self.view, self.runtime, self.settings
        writer = MarkerWriter(partitions, groups)
        sender = MarkerSender(view, runtime, self.store, writer, self._links(peers))
        transactions = Transactions(view, runtime, settings, partitions, producer_ids, sender)
        adding = AddPartitionsSender(view, runtime, settings, transactions, self._links(peers))
        return Transacting(writer, sender, transactions, adding, Verifications(adding))

    def _share(
        self, peers: Peers, partitions: Partitions, groups: Groups, topics: Topics
    ) -> ShareParts:
        view, runtime, settings = self.view, self.runtime, self.settings
        states = ShareStates(view, runtime, settings, partitions)
        persister = Persister(view, runtime, topics, states, self._links(peers))
        group_settings = ShareGroupSettings(view, settings)
        dead_letters = DeadLetterSender(
            view, runtime, settings, partitions, topics, self._links(peers)
        )
        sharing = Sharing(
            runtime,
            settings,
            partitions,
            group_settings,
            persister,
            AssignmentLookup(view.broker_id, groups, peers),
            dead_letters,
        )
        return ShareParts(
            states,
            persister,
            group_settings,
            GroupShareStates(groups, persister),
            dead_letters,
            sharing,
        )

    def _controller(self, peers: Peers, orders: Orders) -> Controller:
        control = Control(self.view.broker_id, peers, orders)
        return Controller(
            self.store,
            self.view.broker_id,
            self.settings,
            self.runtime.clock,
            self.decisions,
            lambda topic: election_rules(topic, self.view.image, self.settings),
            control.deliver,
            control.reaches,
            control.answers,
            self.isolated.emit,
        )

    def _membership(self, replication: Replication, controller: Controller) -> BrokerMembership:
        settings, filesystem = self.settings, self.seams.filesystem
        session_ms = settings.integer("broker.session.timeout.ms")
        folder = settings.log_dirs[0]
        return BrokerMembership(
            self.store,
            self.fence,
            self.runtime.clock,
            session_ms,
            filesystem.page_cache_id(folder),
            note=SessionNote(filesystem, folder),
            on_lost=self.registration_lost.emit,
            on_joined=Joining(self.view, self.fence, session_ms, replication, controller).joined,
        )

    def _changing(
        self, updates: MetadataUpdates, hosted: Hosted, controller: Controller
    ) -> Settings:
        clock, loop = self.runtime.clock, self.runtime.loop
        configs = Configs(
            self.view,
            updates,
            self.store,
            self.settings,
            hosted,
            clock,
            controller.on_rules_changed,
        )
        quotas = Quotas(self.settings, self.store, clock, loop)
        features = Features(self.view, updates, self.store, clock)
        authorizer = new_authorizer(self.settings)
        acls = None if authorizer is None else Acls(self.store, clock, authorizer)
        users = ScramUsers(self.store, clock, self.opened.secret)
        on_changed = users.before(features.before(quotas.before(configs.on_changed)))
        if acls is not None:
            on_changed = acls.before(on_changed)
        tokens = new_tokens(self.settings, self.store, self.runtime)
        if tokens is not None:
            on_changed = tokens.before(on_changed)
        deleted = [part.load for part in (acls, tokens) if part is not None]
        reload = reading_all(self.store, on_changed, deleted)
        return Settings(
            configs,
            quotas,
            acls,
            users,
            tokens,
            new_audit(self.settings, self.seams.filesystem, self.runtime, authorizer),
            features,
            ConfigChanges(self.store, clock, on_changed, reload),
        )

    def _upkeep(
        self,
        peers: Peers,
        replicas: Replicas,
        flusher: Flusher,
        removals: Removals,
        groups: Groups,
        start_offset: StartOffset,
    ) -> Upkeep:
        settings, runtime, directories = self.settings, self.runtime, self.directories
        partitions = replicas.partitions
        readers = Readers(self.view, runtime.clock, groups, peers, start_offset)
        retention = RetentionKeeper(self.view, runtime, self.decisions, removals, readers)
        return Upkeep(
            Cleaner(settings, runtime, partitions, directories, flusher, removals),
            retention,
            Scrubber(settings, runtime, partitions, directories),
            Maintenance(
                settings,
                runtime,
                partitions,
                directories,
                flusher,
                retention,
                removals,
                self.opened.store_mark,
            ),
        )


def _ping_interval_ms(idle_ms: int) -> int:
    """Often enough that another broker with the same settings closes no connection as idle."""
    return min(_PING_INTERVAL_MS, max(1, idle_ms // 3)) if idle_ms > 0 else _PING_INTERVAL_MS
