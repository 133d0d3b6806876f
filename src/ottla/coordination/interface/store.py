"""The store of the brokers' shared state: a tree of small nodes with versions.

The primitives are ZooKeeper's, so that a real ZooKeeper, a SQLite file and a simulated store can
have the same interface: compare-and-set on a version, several operations at once or none, sessions
whose ephemeral nodes are deleted at their end, sequence numbers, watches. Nodes hold a few
kilobytes. Nothing here knows what the nodes mean.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeAlias

from ottla.coordination.interface.errors import (
    BadVersion,
    NodeExists,
    NoNode,
    NotEmpty,
    SessionExpired,
    StoreDamaged,
    StoreDenied,
    StoreError,
    StoreRolledBack,
    StoreUnavailable,
)

__all__ = [
    "ANY_VERSION",
    "BadVersion",
    "Check",
    "Create",
    "Delete",
    "NoNode",
    "Node",
    "NodeExists",
    "NotEmpty",
    "Operation",
    "Result",
    "Session",
    "SessionExpired",
    "Set",
    "Store",
    "StoreDamaged",
    "StoreDenied",
    "StoreError",
    "StoreRolledBack",
    "StoreUnavailable",
    "Watch",
    "check_path",
    "parent_of",
]

# The `version` argument that matches every version.
ANY_VERSION = -1


class Node(NamedTuple):
    """A node's content and version.

    `owner` is the id of the session an ephemeral node belongs to; 0 for persistent ones.
    """

    data: bytes
    version: int
    owner: int = 0


class Session(Protocol):
    """A client's lease. Ephemeral nodes belong to a session and are deleted at its end."""

    @property
    def id(self) -> int:
        """Unique among all sessions the store ever had."""
        ...

    @property
    def generation(self) -> int:
        """1 for this client's first session, one more for each later one."""
        ...

    @property
    def expired(self) -> bool: ...

    @property
    def confirmed_ms(self) -> int:
        """The monotonic time (`Clock`) at which the store last confirmed the session.

        The lease begins no earlier. Once three quarters of the lease have passed since then, the
        holder acts as if the session had ended, because other clients may soon see it end.
        """
        ...

    @property
    def ends_within_ms(self) -> int:
        """The longest that the store may take to end the session after its holder's death.

        It may be longer than the lease that was asked for: ZooKeeper rounds to ticks.
        """
        ...

    @property
    def credential(self) -> str:
        """The argument for `Store.end_session`.

        Empty if only the holder or time can end the session.
        """
        ...

    def on_expired(self, callback: Callable[[], None]) -> None:
        """Call `callback` once, on the loop, when the session has ended.

        The store stays open: `open_session` gives a session of the next generation.
        """
        ...

    async def close(self) -> None:
        """End the session now and delete its ephemeral nodes."""
        ...


@dataclass(frozen=True, slots=True)
class Create:
    """Create a node whose parent exists. The result is its path, with the number if sequential.

    With a `session` it is ephemeral. Numbers have ten digits; they grow, with gaps.
    """

    path: str
    data: bytes = b""
    session: Session | None = None
    sequential: bool = False


@dataclass(frozen=True, slots=True)
class Set:
    """Replace a node's data. The result is its new version."""

    path: str
    data: bytes
    version: int = ANY_VERSION


@dataclass(frozen=True, slots=True)
class Delete:
    """Remove a node without children. The result is None."""

    path: str
    version: int = ANY_VERSION


@dataclass(frozen=True, slots=True)
class Check:
    """Require that a node exists at a version. The result is None."""

    path: str
    version: int = ANY_VERSION


Operation: TypeAlias = Create | Set | Delete | Check
Result: TypeAlias = str | int | None


class Watch(Protocol):
    """A callback for changes, until it is cancelled."""

    def cancel(self) -> None:
        """Stop calling the callback."""
        ...


class Store(Protocol):
    """A client of the store. All paths are absolute: `/brokers/ids/1`.

    Every method may raise StoreUnavailable. After that, the outcome of a change is unknown: it may
    have been made, and may even be made a little later. A read can show that it was made; only
    another successful change on the same version proves that it will not be.

    One client's calls are carried out in the order they were made. A read sees every change that
    was answered, to any client, before the read was sent.
    """

    async def get(self, path: str) -> Node | None:
        """Return the node; None if there is none."""
        ...

    async def children(self, path: str) -> list[str]:
        """Return the names of the children in ascending order; empty if there is no such node."""
        ...

    async def subtree(self, path: str) -> dict[str, Node]:
        """Return the node and all nodes below it by path, each as of a moment during the call."""
        ...

    async def multi(self, operations: Sequence[Operation]) -> list[Result]:
        """Apply all operations in order, or none. Raises the StoreError of the first that fails."""
        ...

    async def ensure(self, path: str) -> None:
        """Create the node and its ancestors, empty and persistent, if they are missing."""
        ...

    def watch_data(self, path: str, callback: Callable[[], None]) -> Watch:
        """Call `callback` on the loop after the node was created, changed or deleted.

        Watch first, then read: no change is missed. One call may be for several changes, or for
        none (always so after a lost connection). Read the node again to learn its state.
        """
        ...

    def watch_children(self, path: str, callback: Callable[[], None]) -> Watch:
        """Call `callback` on the loop after a child was added or removed."""
        ...

    async def open_session(self, lease_ms: int) -> Session:
        """Begin a session that ends `lease_ms` after the last heartbeat of its holder.

        A client has one session at a time: the previous one must have ended.
        """
        ...

    async def end_session(self, credential: str) -> None:
        """End another client's session, whose holder must be dead; its ephemeral nodes are deleted.

        Nothing happens if it has already ended. Raises StoreError.
        """
        ...

    async def history(self) -> str:
        """Return a mark of all changes so far. Keep it with the data, and replace older marks."""
        ...

    async def require_history(self, mark: str) -> None:
        """Raise StoreRolledBack if the store lacks changes that `mark` covers."""
        ...

    async def close(self) -> None:
        """End this client's session and close the store."""
        ...


def parent_of(path: str) -> str:
    """Return the parent of a path: `/a/b` → `/a`, `/a` → `/`."""
    return path.rpartition("/")[0] or "/"


def check_path(path: str) -> None:
    """Assert that a path is absolute, without an empty part or a trailing slash."""
    assert path == "/" or (path.startswith("/") and "//" not in path and path[-1] != "/"), path
