"""The code that the clients of all stores share: identity, watches, and common methods."""

import asyncio
import ssl
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from ottla.coordination.interface.operations import ChangedPaths
from ottla.coordination.interface.store import Create, Node, NodeExists, Operation, Result, Watch


class StoreClient:
    """The shared part of each implementation of `Store`, whose docstrings describe its methods."""

    def __init__(self, watches: "Watches") -> None:
        self._watches = watches
        self._generation = 0

    async def get(self, path: str) -> Node | None:
        raise NotImplementedError

    async def multi(self, operations: Sequence[Operation]) -> list[Result]:
        raise NotImplementedError

    async def ensure(self, path: str) -> None:
        parts = path.split("/")
        for length in range(2, len(parts) + 1):
            ancestor = "/".join(parts[:length])
            if await self.get(ancestor) is not None:
                continue
            try:
                await self.multi([Create(ancestor)])
            except NodeExists:
                continue

    async def end_session(self, credential: str) -> None:
        raise NotImplementedError(credential)

    def watch_data(self, path: str, callback: Callable[[], None]) -> Watch:
        return self._watches.add_data(path, callback)

    def watch_children(self, path: str, callback: Callable[[], None]) -> Watch:
        return self._watches.add_children(path, callback)


class StoreSession:
    """The shared part of each implementation of `Session`."""

    # Only the holder or time can end the session, unless the implementation has a credential.
    credential = ""

    def __init__(self, generation: int) -> None:
        self.generation = generation
        self.expired = False
        self._loop = asyncio.get_running_loop()
        self._callbacks: list[Callable[[], None]] = []

    def on_expired(self, callback: Callable[[], None]) -> None:
        self._callbacks.append(callback)

    def _note_expired(self) -> bool:
        """Note that the session has ended, and notify its holder; False if that was done before."""
        if self.expired:
            return False
        self.expired = True
        for callback in self._callbacks:
            self._loop.call_soon(callback)
        return True


def call_on_loop(
    loop: asyncio.AbstractEventLoop, callback: Callable[..., object], *arguments: object
) -> bool:
    """Have the loop call `callback`, from any thread; False if the loop is closed."""
    try:
        loop.call_soon_threadsafe(callback, *arguments)
    except RuntimeError:
        return False
    return True


Callback = Callable[[], None]


class _Watch:
    """One callback on one path."""

    def __init__(self, watchers: dict[str, list["_Watch"]], path: str, callback: Callback) -> None:
        self._watchers = watchers
        self._path = path
        self._callback = callback
        self._scheduled = False
        self._cancelled = False

    def cancel(self) -> None:
        if not self._cancelled:
            self._cancelled = True
            watchers = self._watchers[self._path]
            watchers.remove(self)
            if not watchers:
                del self._watchers[self._path]

    def fire(self, loop: asyncio.AbstractEventLoop) -> None:
        """Have the callback called in the loop's next turn, once for all changes until then."""
        if not self._scheduled:
            self._scheduled = True
            loop.call_soon(self._call)

    def _call(self) -> None:
        self._scheduled = False
        if not self._cancelled:
            self._callback()


class Watches:
    """The watches of one client of the store."""

    def __init__(self) -> None:
        self._data: dict[str, list[_Watch]] = {}
        self._children: dict[str, list[_Watch]] = {}

    def add_data(self, path: str, callback: Callback) -> Watch:
        return self._add(self._data, path, callback)

    def add_children(self, path: str, callback: Callback) -> Watch:
        return self._add(self._children, path, callback)

    @property
    def data_paths(self) -> list[str]:
        return list(self._data)

    @property
    def children_paths(self) -> list[str]:
        return list(self._children)

    def concern(self, changes: ChangedPaths) -> bool:
        """Whether any of these watches concerns `changes`."""
        return not (
            self._data.keys().isdisjoint(changes.data)
            and self._children.keys().isdisjoint(changes.children)
        )

    def fire_all(self, loop: asyncio.AbstractEventLoop) -> None:
        """Call every watch, because the changes are unknown."""
        _fire(self._data, self.data_paths, loop)
        _fire(self._children, self.children_paths, loop)

    def fire(self, changes: ChangedPaths, loop: asyncio.AbstractEventLoop) -> None:
        """Call the watches that `changes` concern. Runs on the loop's thread."""
        _fire(self._data, changes.data, loop)
        _fire(self._children, changes.children, loop)

    @staticmethod
    def _add(watchers: dict[str, list[_Watch]], path: str, callback: Callback) -> _Watch:
        watch = _Watch(watchers, path, callback)
        watchers.setdefault(path, []).append(watch)
        return watch


def _fire(
    watchers: dict[str, list[_Watch]], paths: Iterable[str], loop: asyncio.AbstractEventLoop
) -> None:
    for path in sorted(paths):
        for watch in watchers.get(path, ()):
            watch.fire(loop)


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
    # Creates the TLS context of a new connection, from the present files; None without TLS.
    tls: Callable[[], ssl.SSLContext] | None = field(default=None, repr=False, compare=False)

    @property
    def identifies(self) -> bool:
        """Whether the store authenticates its client, so that nodes can be restricted to it."""
        return bool(self.user) or self.has_certificate

    def is_sensitive(self, path: str) -> bool:
        """Whether only brokers may read a node."""
        return any(path == root or path.startswith(f"{root}/") for root in self.sensitive)
