"""The permissions of a connection's client, and the authorized operations in answers (KIP-430).

A set of operations is a 32-bit field in which bit N stands for the operation with number N.
"""

from typing import Any, Protocol, TypeVar

from ottla.network.connection import Connection
from ottla.security.authorizer import Authorizer
from ottla.security.names import AclOperation, AclResource
from ottla.security.principal import Principal

_READ, _WRITE, _CREATE, _DELETE, _ALTER, _DESCRIBE = 3, 4, 5, 6, 7, 8
_CLUSTER_ACTION, _DESCRIBE_CONFIGS, _ALTER_CONFIGS, _IDEMPOTENT_WRITE = 9, 10, 11, 12

_Group = TypeVar("_Group", bound="DescribedGroup")

# The value of the response field if the request did not ask for authorized operations.
NOT_ASKED = -(2**31)


def _bits(*operations: int) -> int:
    return sum(1 << operation for operation in operations)


TOPIC_OPERATIONS = _bits(
    _READ, _WRITE, _CREATE, _DELETE, _ALTER, _DESCRIBE, _DESCRIBE_CONFIGS, _ALTER_CONFIGS
)
GROUP_OPERATIONS = _bits(_READ, _DELETE, _DESCRIBE, _DESCRIBE_CONFIGS, _ALTER_CONFIGS)
CLUSTER_OPERATIONS = _bits(
    _CREATE,
    _ALTER,
    _DESCRIBE,
    _CLUSTER_ACTION,
    _DESCRIBE_CONFIGS,
    _ALTER_CONFIGS,
    _IDEMPOTENT_WRITE,
)


class DescribedGroup(Protocol):
    """A described group in the answer of any of the three APIs that describe groups."""

    group_id: str
    error_code: int
    error_message: str | None
    members: list[Any]
    authorized_operations: int


def with_operations(groups: list[_Group], *, asked: bool) -> list[_Group]:
    """Add the authorized operations to each group if the request asked for them.

    Groups with an error get no operations.
    """
    if asked:
        for group in groups:
            if not group.error_code:
                group.authorized_operations = GROUP_OPERATIONS
    return groups


class Access:
    """The permissions of a connection's client, known by login, certificate or as ANONYMOUS."""

    __slots__ = ("_connection", "authorizer", "seen")

    def __init__(self, authorizer: Authorizer, connection: Connection) -> None:
        self.authorizer = authorizer
        self._connection = connection
        # The version of the ACLs that applied when the connection's shortcuts were learned.
        self.seen = authorizer.version

    @property
    def principal(self) -> Principal:
        """Return the principal of the client."""
        return self._connection.principal

    @property
    def host(self) -> str:
        """Return the client's address."""
        return self._connection.peer_host

    # Hot: once per topic of a request that takes the slow path.
    def allows(self, operation: AclOperation, kind: AclResource, name: str) -> bool:
        """Return whether the client may do the operation on that resource."""
        return self.authorizer.allows(self.principal, self.host, operation, kind, name)

    def allows_any(self, operation: AclOperation, kind: AclResource) -> bool:
        """Return whether the client may do the operation on at least one resource of the type."""
        return self.authorizer.allows_any(self.principal, self.host, operation, kind)

    def operations(self, operations: int, kind: AclResource, name: str) -> int:
        """Return the subset of `operations`, a bit set, that the client may do (KIP-430)."""
        return sum(
            1 << operation
            for operation in AclOperation
            if operations >> operation & 1 and self.allows(operation, kind, name)
        )
