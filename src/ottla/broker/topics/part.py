"""The part for the cluster image: applies the controller's updates, and changes topics."""

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from uuid import UUID

from ottla.base.clock import Clock
from ottla.base.ids import TopicPartition
from ottla.base.settings import BrokerSettings
from ottla.broker.cluster.metadata_updates import MetadataUpdates, PartitionHost
from ottla.broker.cluster.new_leaders import NewLeaders
from ottla.broker.cluster.orders import Orders
from ottla.broker.cluster.part import ClusterPart
from ottla.broker.cluster.registration import known_brokers
from ottla.broker.partitions.partitions import Partitions
from ottla.broker.runtime.part import BrokerPart
from ottla.broker.runtime.patience import StorePatience
from ottla.broker.runtime.signal import Signal
from ottla.broker.topics.topics import Topics
from ottla.metadata.image import NO_LEADER, ClusterImage
from ottla.metadata.loader import load_image
from ottla.storage.directory.log_directories import LogDirectories
from ottla.storage.files.partition_metadata import is_damaged

_log = logging.getLogger(__name__)

# The most warnings per start, because a copied data directory has thousands of such folders.
_WARNINGS_MAX = 10

_NO_IMPORT = (
    "A log that was copied in is not imported: produce its records into a topic, or start a broker "
    "on a copy of the whole data directory"
)


def warn_of_strays(on_disk: Mapping[TopicPartition, UUID | None], image: ClusterImage) -> None:
    """Log a warning for each folder of `on_disk` that is not the log of a partition in `image`."""
    sentences = list(strays(on_disk, image))
    for sentence in sentences[:_WARNINGS_MAX]:
        _log.warning("%s. %s", sentence, _NO_IMPORT)
    if len(sentences) > _WARNINGS_MAX:
        _log.warning(
            "%d more folders are not logs of partitions of this cluster",
            len(sentences) - _WARNINGS_MAX,
        )


def strays(on_disk: Mapping[TopicPartition, UUID | None], image: ClusterImage) -> Iterator[str]:
    """Yield a sentence for each folder that is not the log of a partition in `image`.

    `on_disk` maps partitions with a folder to the topic id in the folder's metadata file.
    """
    for partition, topic_id in sorted(on_disk.items()):
        topic = image.topics.get(partition.topic)
        if topic is None or partition.partition >= len(topic.partitions):
            what = "topic" if topic is None else "partition"
            yield (
                f"the folder {partition} belongs to no {what} of this cluster and serves nothing; "
                "it is left as it is, unless its topic was deleted while this broker was down"
            )
        elif topic_id not in (None, topic.id) and not is_damaged(topic_id, topic.id):
            yield (
                f"the folder {partition} holds the log of another topic (id {topic_id}) than this "
                f"cluster's {partition.topic} (id {topic.id}); it is kept under a name that ends "
                "in -stray, and an empty log takes its place"
            )


def _is_assigned(image: ClusterImage, broker_id: int, partition: TopicPartition) -> bool:
    found = image.partition(*partition)
    return found is not None and broker_id in found.replicas


@dataclass(frozen=True, slots=True)
class MetadataStatus:
    """Counts the topics in this broker's image of the cluster."""

    topics: int
    partitions: int
    without_leader: int
    # The number of partitions of each topic.
    partition_counts: Mapping[str, int]


class MetadataPart(BrokerPart):
    """Keeps the cluster image, and changes topics.

    `orders` and `updates` handle the controller's requests, `topics` the requests of clients.
    """

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

        Brokers that are not alive at the start are treated as departed just now.
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
        self._directories.forget_unassigned(partial(_is_assigned, loaded.image, view.broker_id))

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
            partition_counts={topic.name: len(topic.partitions) for topic in topics},
        )
