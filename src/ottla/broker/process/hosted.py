"""The local state that follows the cluster image: partitions and groups, updated in order."""

from ottla.broker.groups import Groups
from ottla.broker.replication.replication import Replication
from ottla.metadata.image import ClusterImage


class Hosted:
    """Updates partitions first, then the groups, which hold offsets of topics."""

    def __init__(self, replication: Replication, groups: Groups) -> None:
        self._replication = replication
        self._groups = groups
        self._topics: frozenset[str] = frozenset()

    async def apply(self, image: ClusterImage) -> None:
        """Open, configure and delete partitions to match `image`."""
        self._replication.on_image(image)
        await self._replication.partitions.apply(image)
        deleted = self._topics.difference(image.topics)
        self._topics = frozenset(image.topics)
        if deleted:
            self._groups.on_topics_deleted(deleted)

    def update_configs(self, image: ClusterImage) -> None:
        """Apply changed settings to the logs and the replication throttles at once."""
        self._replication.throttles.configure(image)
        self._replication.partitions.update_configs(image)
