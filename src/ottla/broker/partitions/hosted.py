"""Everything on this broker that follows the cluster image, brought in step in its order."""

from ottla.broker.groups import Groups
from ottla.broker.partitions.partitions import Partitions
from ottla.broker.replication.replication import Replication
from ottla.metadata.image import ClusterImage


class Hosted:
    """Partitions first, then the groups, which remember offsets of topics."""

    def __init__(
        self,
        replication: Replication,
        partitions: Partitions,
        groups: Groups,
        *,
        controlled: bool,
    ) -> None:
        """`controlled`: roles are given by a controller's orders, and do not follow the image."""
        self._controlled = controlled
        self._replication = replication
        self._partitions = partitions
        self._groups = groups
        self._topics: frozenset[str] = frozenset()

    async def apply(self, image: ClusterImage) -> None:
        """Open, configure and delete until all is as `image` says."""
        self._replication.on_image(image)
        await self._partitions.apply(image)
        if not self._controlled:
            await self._partitions.order(
                (topic, index, partition)
                for topic in image.topics.values()
                for index, partition in enumerate(topic.partitions)
                if self._replication.standing.broker_id in partition.replicas
            )
        deleted = self._topics.difference(image.topics)
        self._topics = frozenset(image.topics)
        if deleted:
            self._groups.on_topics_deleted(deleted)

    def update_configs(self, image: ClusterImage) -> None:
        """Carry changed settings into the logs at once, and into what throttles their copies."""
        self._replication.throttles.configure(image)
        self._partitions.update_configs(image)
