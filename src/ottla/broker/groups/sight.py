"""Finds the topics that a heartbeat's client may see: those it may DESCRIBE."""

from dataclasses import dataclass

from ottla.broker.requests.request import RequestContext
from ottla.group.values.topics import Sight, sees_all
from ottla.security.authorizer import Authorizer
from ottla.security.names import AclOperation, AclResource
from ottla.security.principal import Principal


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
