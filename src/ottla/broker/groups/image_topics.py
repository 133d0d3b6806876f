"""The image's topics, in the form that groups of the consumer protocol use."""

from collections.abc import Iterable
from uuid import UUID

from ottla.base.ids import TopicId
from ottla.group.values.topics import TopicShape
from ottla.metadata.image import ClusterImage


class ImageTopics:
    """Implements `group.values.topics.TopicsView`."""

    __slots__ = ("_image", "token")

    def __init__(self, image: ClusterImage) -> None:
        self._image = image
        self.token: object = image.topics

    def find(self, name: str) -> TopicShape | None:
        """The topic of that name, if it exists."""
        topic = self._image.topic(name)
        return None if topic is None else TopicShape(name, topic.id, len(topic.partitions))

    def name_of(self, topic_id: UUID) -> str | None:
        """The topic's name; None once it is deleted."""
        topic = self._image.topic_by_id(TopicId(topic_id))
        return None if topic is None else topic.name

    def names(self) -> Iterable[str]:
        """The names of all topics."""
        return self._image.topics
