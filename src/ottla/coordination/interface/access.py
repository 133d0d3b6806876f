"""Who a broker is to its store, and what others may do with the nodes it makes."""

import ssl
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class StoreAccess:
    """Of a ZooKeeper; other stores have files, which the system's permissions protect."""

    user: str = ""
    password: str = field(default="", repr=False)
    # A SASL mechanism (DIGEST-MD5); "" is ZooKeeper's own scheme `digest`.
    mechanism: str = ""
    # Whether the client shows a certificate.
    has_certificate: bool = False
    # Whether nodes are made with ACLs, so that only the identity which made them changes them.
    protects: bool = False
    # Nodes that others may not even read, with all below them.
    sensitive: tuple[str, ...] = ()
    # The TLS context of a new connection, by the files as they are then; None without TLS.
    tls: Callable[[], ssl.SSLContext] | None = field(default=None, repr=False, compare=False)

    @property
    def identifies(self) -> bool:
        """Whether the store knows who its client is, so that nodes can be for it alone."""
        return bool(self.user) or self.has_certificate

    def is_sensitive(self, path: str) -> bool:
        """Whether a node is for brokers' eyes only."""
        return any(path == root or path.startswith(f"{root}/") for root in self.sensitive)
