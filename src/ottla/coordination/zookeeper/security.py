"""A client's login at ZooKeeper, and the ACLs of its nodes."""

import ssl
from collections.abc import Callable
from dataclasses import dataclass, field

from kazoo.security import CREATOR_ALL_ACL, OPEN_ACL_UNSAFE, READ_ACL_UNSAFE

from ottla.coordination.interface.access import StoreAccess


@dataclass(frozen=True, slots=True)
class ZookeeperSecurity:
    """The access of one client, in kazoo's terms."""

    access: StoreAccess = field(default_factory=StoreAccess)

    @property
    def user(self) -> str:
        return self.access.user

    @property
    def is_sasl(self) -> bool:
        return bool(self.access.user and self.access.mechanism)

    @property
    def auth_data(self) -> list[tuple[str, str]] | None:
        """The credentials that kazoo sends after each connect, for ZooKeeper's scheme `digest`."""
        if not self.access.user or self.is_sasl:
            return None
        return [("digest", f"{self.access.user}:{self.access.password}")]

    @property
    def tls(self) -> Callable[[], ssl.SSLContext] | None:
        return self.access.tls

    def acl(self, path: str) -> list[object]:
        """The ACL of one of our nodes: all rights for its creator.

        Other clients may read the nodes that are not sensitive.
        """
        if not self.access.protects:
            return list(OPEN_ACL_UNSAFE)
        return list(CREATOR_ALL_ACL if self.access.is_sensitive(path) else _READABLE)


_READABLE = [*CREATOR_ALL_ACL, *READ_ACL_UNSAFE]
