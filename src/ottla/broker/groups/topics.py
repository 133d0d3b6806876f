"""The topics that members of consumer groups may see and subscribe to."""

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
        """Return a topic; None if it does not exist."""
        topic = self._image.topic(name)
        return None if topic is None else TopicShape(name, topic.id, len(topic.partitions))

    def name_of(self, topic_id: UUID) -> str | None:
        """Return a topic's name; None if it was deleted."""
        topic = self._image.topic_by_id(TopicId(topic_id))
        return None if topic is None else topic.name

    def names(self) -> Iterable[str]:
        """Return the names of all topics."""
        return self._image.topics


@dataclass(frozen=True, slots=True)
class _Described:
    """Checks a principal's DESCRIBE permission under one version of the ACLs.

    Objects of different versions are unequal, so that patterns are matched again after a change.
    """

    authorizer: Authorizer
    version: int
    principal: Principal
    host: str

    def __call__(self, topic: str) -> bool:
        """Whether the principal may DESCRIBE the topic; a denial is not logged."""
        return self.authorizer.allows(
            self.principal, self.host, AclOperation.DESCRIBE, AclResource.TOPIC, topic
        )


def sight_of(request: RequestContext) -> Sight:
    """Return a check of the topics that the client may see: all topics without an authorizer."""
    access = request.access
    if access is None:
        return sees_all
    authorizer = access.authorizer
    return _Described(authorizer, authorizer.version, access.principal, access.host)
