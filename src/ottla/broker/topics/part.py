"""The part for the cluster image: receives updates, applies them, and changes topics."""

from dataclasses import dataclass

from ottla.base.clock import Clock
from ottla.base.settings import BrokerSettings
from ottla.broker.cluster.metadata_updates import MetadataUpdates, PartitionHost
from ottla.broker.cluster.new_leaders import NewLeaders
from ottla.broker.cluster.orders import Orders
from ottla.broker.cluster.part import ClusterPart
from ottla.broker.cluster.registration import known_brokers
from ottla.broker.partitions.partitions import Partitions
from ottla.broker.partitions.strays import warn_of_strays
from ottla.broker.runtime.part import BrokerPart
from ottla.broker.runtime.patience import StorePatience
from ottla.broker.runtime.signal import Signal
from ottla.broker.topics.topics import Topics
from ottla.metadata.image import NO_LEADER
from ottla.metadata.loader import load_image
from ottla.storage.directory.log_directories import LogDirectories


@dataclass(frozen=True, slots=True)
class MetadataStatus:
    """Counts the topics in this broker's image of the cluster."""

    topics: int
    partitions: int
    without_leader: int


class MetadataPart(BrokerPart):
    """`orders` and `updates` handle the controller's messages; `topics` carries out requests."""

    def __init__(
        self,
        settings: BrokerSettings,
        clock: Clock,
        cluster: ClusterPart,
        partitions: Partitions,
        directories: LogDirectories,
        host: PartitionHost,
    ) -> None:
        view, store, fence = cluster.view, cluster.store, cluster.fence
        self._clock = clock
        self._cluster = cluster
        self._directories = directories
        self.image_changed: Signal[[]] = Signal()
        self.updates = MetadataUpdates(view, store, fence, host, self.image_changed)
        self.orders = Orders(view, fence, partitions, self.updates)
        self.topics = Topics(view, store, settings, self.updates)
        self.new_leaders = NewLeaders(view, partitions)

    async def load(self, patience: StorePatience) -> None:
        """Use the image in the store until the controller sends a newer one.

        A broker that died before this one started counts as having died now.
        """
        store, view, departed = self._cluster.store, self._cluster.view, self._cluster.departed
        loaded = await patience.ask(lambda: load_image(store, view.cluster_id))
        self.updates.show(loaded.image)
        known = await patience.ask(lambda: known_brokers(store))
        known.pop(view.broker_id, None)
        now_ms = self._clock.monotonic_ms()
        departed.on_image(known, now_ms)
        departed.on_image(view.image.brokers, now_ms)
        warn_of_strays(self._directories.found_at_start, loaded.image)

    async def stop(self) -> None:
        self.topics.close()

    def status(self) -> MetadataStatus:
        topics = self._cluster.view.image.topics.values()
        return MetadataStatus(
            topics=len(topics),
            partitions=sum(len(topic.partitions) for topic in topics),
            without_leader=sum(
                state.leader == NO_LEADER for topic in topics for state in topic.partitions
            ),
        )
