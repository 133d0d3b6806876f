"""A broker's identity at its store, and others' access to the nodes it creates."""

import ssl
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class StoreAccess:
    """Access to a ZooKeeper; other stores are files, which the system's permissions protect."""

    user: str = ""
    password: str = field(default="", repr=False)
    # A SASL mechanism (DIGEST-MD5); "" is ZooKeeper's own scheme `digest`.
    mechanism: str = ""
    # Whether the client shows a certificate.
    has_certificate: bool = False
    # Whether nodes get ACLs, so that only the identity that created them can change them.
    protects: bool = False
    # Nodes that others may not even read, with everything below them.
    sensitive: tuple[str, ...] = ()
    # The TLS context of a new connection, from the files as they are then; None without TLS.
    tls: Callable[[], ssl.SSLContext] | None = field(default=None, repr=False, compare=False)

    @property
    def identifies(self) -> bool:
        """Whether the store authenticates its client, so that nodes can be restricted to it."""
        return bool(self.user) or self.has_certificate

    def is_sensitive(self, path: str) -> bool:
        """Whether only brokers may read a node."""
        return any(path == root or path.startswith(f"{root}/") for root in self.sensitive)
