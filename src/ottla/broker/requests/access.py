"""The permissions of one connection's client: its principal and address, and the authorizer."""

from ottla.network.connection import Connection
from ottla.security.authorizer import Authorizer
from ottla.security.names import AclOperation, AclResource
from ottla.security.principal import Principal


class Access:
    """The permissions of a connection's client, known by login, certificate or as ANONYMOUS."""

    __slots__ = ("_connection", "authorizer", "seen")

    def __init__(self, authorizer: Authorizer, connection: Connection) -> None:
        self.authorizer = authorizer
        self._connection = connection
        # The version of the ACLs under which the connection's shortcuts were learned.
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
        """Whether the client may do the operation on that resource."""
        return self.authorizer.allows(self.principal, self.host, operation, kind, name)

    def allows_any(self, operation: AclOperation, kind: AclResource) -> bool:
        """Whether the client may do the operation on at least one resource of the type."""
        return self.authorizer.allows_any(self.principal, self.host, operation, kind)

    def operations(self, operations: int, kind: AclResource, name: str) -> int:
        """Return the subset of `operations`, a bit set, that the client may do (KIP-430)."""
        return sum(
            1 << operation
            for operation in AclOperation
            if operations >> operation & 1 and self.allows(operation, kind, name)
        )
