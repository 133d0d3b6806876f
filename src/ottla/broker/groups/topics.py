"""The topics that groups of the consumer protocol read: those that a client may see."""

from collections.abc import Iterable
from dataclasses import dataclass
from uuid import UUID

from ottla.base.ids import TopicId
from ottla.broker.requests.request import RequestContext
from ottla.group.values.topics import Sight, TopicShape, sees_all
from ottla.metadata.image import ClusterImage
from ottla.security.authorizer import Authorizer
from ottla.security.names import AclOperation, AclResource
from ottla.security.principal import Principal


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


@dataclass(frozen=True, slots=True)
class _Described:
    """A principal's permission under one version of the rules.

    It differs between versions, so that patterns are matched again after a change.
    """

    authorizer: Authorizer
    version: int
    principal: Principal
    host: str

    def __call__(self, topic: str) -> bool:
        """Whether the principal may DESCRIBE the topic now; a denial is not logged."""
        return self.authorizer.allows(
            self.principal, self.host, AclOperation.DESCRIBE, AclResource.TOPIC, topic
        )


def sight_of(request: RequestContext) -> Sight:
    """The topics that the client may see: all of them if the broker has no authorizer."""
    access = request.access
    if access is None:
        return sees_all
    authorizer = access.authorizer
    return _Described(authorizer, authorizer.version, access.principal, access.host)
