"""Which topics the client of a heartbeat may see: those it may DESCRIBE."""

from dataclasses import dataclass

from ottla.broker.requests.request import RequestContext
from ottla.group.values.topics import Sight, sees_all
from ottla.security.authorizer import Authorizer
from ottla.security.names import AclOperation, AclResource
from ottla.security.principal import Principal


@dataclass(frozen=True, slots=True)
class _Described:
    """By the rules of one version: another one is unequal, so that patterns are matched again."""

    authorizer: Authorizer
    version: int
    principal: Principal
    host: str

    def __call__(self, topic: str) -> bool:
        """Whether the principal may DESCRIBE it now; a denial is not logged."""
        return self.authorizer.allows(
            self.principal, self.host, AclOperation.DESCRIBE, AclResource.TOPIC, topic
        )


def sight_of(request: RequestContext) -> Sight:
    """The client's; of all topics where the broker has no authorizer."""
    access = request.access
    if access is None:
        return sees_all
    authorizer = access.authorizer
    return _Described(authorizer, authorizer.version, access.principal, access.host)
