"""The parts of a broker, one statement each, in the order in which they start.

A new part is a file of its own and a statement here. Only the code that runs the broker, tests and
the simulation access all parts; a part or handler receives only the parts that it uses.
"""

from collections.abc import Iterator, Mapping

from ottla.base.ids import TopicId
from ottla.base.settings import BrokerSettings
from ottla.broker.access.part import AccessPart
from ottla.broker.audit.audit import new_audit
from ottla.broker.canary.canary import Canary
from ottla.broker.cluster.orders import Control
from ottla.broker.cluster.part import ClusterPart
from ottla.broker.compaction.cleaner import Cleaner
from ottla.broker.configs.part import ConfigsPart, StoredPart
from ottla.broker.controller import Controller
from ottla.broker.groups import Groups
from ottla.broker.lags.group_lags import GroupLags
from ottla.broker.login.logins import LoginPart
from ottla.broker.partitions.failed_replicas import FailedReplicas
from ottla.broker.partitions.log_config import election_rules
from ottla.broker.process.storage import Seams, Storage
from ottla.broker.quotas.quotas import Quotas
from ottla.broker.replication.replication import Replication
from ottla.broker.retention.keeper import RetentionKeeper
from ottla.broker.retention.readers import Readers
from ottla.broker.runtime.part import BrokerPart, StopMode
from ottla.broker.runtime.runtime import Runtime
from ottla.broker.share.part import SharePart
from ottla.broker.topics.part import MetadataPart
from ottla.broker.transactions.part import TransactionPart
from ottla.broker.undo.trash import TrashKeeper
from ottla.broker.usage.part import UsagePart
from ottla.coordination.interface.store import Session
from ottla.metadata.decisions import Decisions
from ottla.metadata.image import ClusterImage, TopicImage


class Hosted:
    """Applies a new image to the partitions first, then to the groups, which hold their offsets."""

    def __init__(self, replication: Replication, groups: Groups, trash: TrashKeeper) -> None:
        self._replication = replication
        self._groups = groups
        self._trash = trash
        self._topics: Mapping[TopicId, TopicImage] = {}

    async def apply(self, image: ClusterImage) -> None:
        """Open, configure and delete partitions to match `image`."""
        self._replication.on_image(image)
        await self._replication.partitions.apply(image)
        before, self._topics = self._topics, image.topics_by_id
        gone = before.keys() - image.topics_by_id.keys()
        if gone:
            self._groups.on_topics_deleted({before[each].name: each for each in gone})
            self._trash.on_deleted(gone)

    def update_configs(self, image: ClusterImage) -> None:
        """Apply changed settings to the logs and the replication throttles at once."""
        self._replication.throttles.configure(image)
        self._replication.partitions.update_configs(image)


class Parts:
    """The parts of a broker. They are started in this order and stopped in reverse."""

    def __init__(
        self,
        settings: BrokerSettings,
        seams: Seams,
        runtime: Runtime,
        storage: Storage,
        stop_mode: StopMode,
    ) -> None:
        """Create all parts. `storage` must be open.

        Raises OttlaError if settings contradict each other.
        """
        clock, store, directories = runtime.clock, storage.store, storage.log_directories
        self.cluster = ClusterPart(
            settings,
            clock,
            storage.filesystem,
            seams.dialer,
            store,
            storage.cluster_id,
            storage.secret,
        )
        view, peers, decisions = self.cluster.view, self.cluster.peers, Decisions()
        # Stopped before the session ends, and after every part that may set a deadline.
        self.runtime = runtime
        self.replication = Replication(
            settings,
            runtime,
            view,
            store,
            directories,
            peers,
            decisions,
            self.cluster.isolated,
            stop_mode,
            worker=seams.worker,
            rng=seams.rng,
        )
        partitions, removals = self.replication.partitions, self.replication.removals
        self.groups = Groups(view, runtime, settings, partitions)
        self.trash = TrashKeeper(
            settings, runtime, view, store, directories, removals, self.groups.forget_topic
        )
        self.transactions = TransactionPart(
            settings, runtime, self.cluster, partitions, self.groups
        )
        host = Hosted(self.replication, self.groups, self.trash)
        self.metadata = MetadataPart(settings, clock, self.cluster, partitions, directories, host)
        self.share = SharePart(
            settings, runtime, self.cluster, partitions, self.groups, self.metadata.topics
        )
        control = Control(view.broker_id, peers, self.metadata.orders)
        self.controller = Controller(
            store,
            view.broker_id,
            settings,
            clock,
            decisions,
            lambda topic: election_rules(topic, view.image, settings),
            control.deliver,
            control.reaches,
            control.answers,
            self.cluster.isolated.emit,
        )
        self.quotas = Quotas(settings, store, clock, runtime.loop)
        self.access = AccessPart(settings, clock, view, store)
        # None if the settings request no audit log.
        self.audit = new_audit(settings, storage.filesystem, runtime, self.access.authorizer)
        self.login = LoginPart(
            settings,
            runtime,
            store,
            storage.secret,
            self.audit,
            lambda: self.controller.is_active,
        )
        stored: list[StoredPart] = [self.quotas, self.login.users]
        stored += [each for each in (self.access.acls, self.login.tokens) if each is not None]
        self.configs = ConfigsPart(
            settings,
            clock,
            self.cluster,
            self.metadata,
            host,
            stored,
            self.controller.on_rules_changed,
        )
        self.usage = UsagePart(runtime, view, directories, stop_mode)
        self.lags = GroupLags(view, runtime, partitions, self.groups, self.cluster.links())
        readers = Readers(view, clock, self.groups, peers, self.share.persister.start_offset)
        self.retention = RetentionKeeper(
            settings,
            runtime,
            view,
            partitions,
            directories,
            removals,
            decisions,
            readers,
            self.usage.table,
        )
        self.cleaner = Cleaner(
            settings, runtime, partitions, directories, self.replication.flusher, removals
        )
        self.canary = Canary(
            settings, runtime, view, peers, partitions, self.groups, self.metadata.topics
        )
        self._subscribe()

    def __iter__(self) -> Iterator[BrokerPart]:
        return iter(self.by_name().values())

    def by_name(self) -> Mapping[str, BrokerPart]:
        """Return every part of this broker by name."""
        return {name: part for name, part in vars(self).items() if part is not None}

    def _subscribe(self) -> None:
        """Subscribe parts to events of other parts."""
        cluster, replication, controller = self.cluster, self.replication, self.controller
        spawn, monotonic_ms = self.runtime.spawn, self.runtime.clock.monotonic_ms
        on_role = replication.roles.on_role
        on_role.subscribe(self.groups.on_role)
        on_role.subscribe(self.transactions.coordinator.on_role)
        on_role.subscribe(self.share.on_role)
        failed_replicas = FailedReplicas(cluster.store, cluster.view.broker_id, spawn)
        replication.partitions.on_failed.subscribe(failed_replicas.report)
        cluster.peers.on_lost.subscribe(controller.suspect)

        async def on_joined(session: Session) -> None:
            # The controller, perhaps on this very broker, assigns roles in this registration.
            replication.on_registered(cluster.fence.broker_epoch, session)
            await controller.stand(session)

        cluster.on_joined = on_joined
        cluster.registration_lost.subscribe(replication.on_unregistered)
        cluster.registration_lost.subscribe(controller.stand_down)
        cluster.isolated.subscribe(lambda: spawn(cluster.membership.withdraw()))
        image_changed = self.metadata.image_changed
        image_changed.subscribe(
            lambda: cluster.departed.on_image(cluster.view.image.brokers, monotonic_ms())
        )
        image_changed.subscribe(cluster.peers.on_image)
        image_changed.subscribe(self.transactions.on_image)
