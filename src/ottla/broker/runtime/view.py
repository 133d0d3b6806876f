"""The cluster image that this broker currently uses; this is the only place that keeps it."""

from ottla.base.ids import BrokerId
from ottla.metadata.image import ClusterImage


class ClusterView:
    """This broker's id, its cluster's id, and the current image.

    An image is immutable and replaced as a whole: a part that reads `image` once sees one state.
    Only `cluster.metadata_updates` replaces it.
    """

    __slots__ = ("_image", "broker_id", "cluster_id")

    def __init__(
        self, broker_id: BrokerId, cluster_id: str, image: ClusterImage | None = None
    ) -> None:
        self.broker_id = broker_id
        self.cluster_id = cluster_id
        self._image = ClusterImage(cluster_id) if image is None else image

    @property
    def image(self) -> ClusterImage:
        """Return the newest cluster image that the controller sent."""
        return self._image

    def replace(self, image: ClusterImage) -> None:
        """Make `image` the current one."""
        self._image = image
