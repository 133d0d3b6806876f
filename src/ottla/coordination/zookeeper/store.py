"""The store in a ZooKeeper ensemble, for brokers on many machines. Uses kazoo.

Nodes are stored unchanged under `chroot`, so that ZooKeeper's own client reads them. Their ACLs are
those of `StoreAccess`.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, TypeAlias

from kazoo.client import KazooClient
from kazoo.exceptions import RolledBackError, RuntimeInconsistency

from ottla.base.clock import SystemClock
from ottla.coordination.interface.client import StoreAccess, StoreClient
from ottla.coordination.interface.errors import (
    BadVersion,
    SessionExpired,
    StoreDenied,
    StoreRolledBack,
    StoreUnavailable,
)
from ottla.coordination.interface.store import (
    Check,
    Create,
    Delete,
    Node,
    NodeExists,
    NoNode,
    Operation,
    Result,
    Set,
    check_path,
)
from ottla.coordination.zookeeper.connection import EnsembleConnection
from ottla.coordination.zookeeper.login import ZookeeperSecurity
from ottla.coordination.zookeeper.session import ZookeeperSession, ZookeeperWatches

# The lease of a client that has not opened a session yet.
_FIRST_LEASE_MS = 10_000
_PATIENCE_MS = 5_000
_MARK_KIND = "zookeeper"
# A version that no node reaches.
_NO_VERSION = 2**31 - 1
_CLOCK = SystemClock()

Request: TypeAlias = Callable[[KazooClient], Any]
Read: TypeAlias = Callable[[Request, str], Awaitable[Any]]


class _NoListener:
    """A listener that ignores its connection."""

    def on_connected(self, connection: EnsembleConnection) -> None:
        """Do nothing."""

    def on_lost(self, session_id: int) -> None:
        """Do nothing."""


_NO_LISTENER = _NoListener()


class ZookeeperStore(StoreClient):
    """One client of the ensemble; implements `Store`. Create it with `open`."""

    _connection: EnsembleConnection

    def __init__(self, hosts: str, chroot: str, access: StoreAccess, timeout_ms: int) -> None:
        self._hosts = hosts
        self._chroot = chroot
        self._security = ZookeeperSecurity(access)
        self._timeout_ms = timeout_ms
        self._zookeeper_watches = ZookeeperWatches(self._locate)
        super().__init__(self._zookeeper_watches)
        self._session: ZookeeperSession | None = None
        self._closed = False

    @classmethod
    async def open(
        cls, hosts: str, *, chroot: str = "", access: StoreAccess, timeout_ms: int
    ) -> "ZookeeperStore":
        """Connect to one of `hosts` (`host:port,host:port`) and create `chroot` if it is missing.

        Raises StoreUnavailable if no server answers within `timeout_ms`, StoreDenied if the user
        lacks the permission.
        """
        store = cls(hosts, chroot, access, timeout_ms)
        store._connection = await store._connect(_FIRST_LEASE_MS)
        store._zookeeper_watches.use(store._connection)
        try:
            await store._make_root()
        except BaseException:
            await store.close()
            raise
        return store

    async def get(self, path: str) -> Node | None:
        return await self._get(path, self._read_newest)

    async def children(self, path: str) -> list[str]:
        return await self._children(path, self._read_newest)

    async def subtree(self, path: str) -> dict[str, Node]:
        await self._sync()
        found: dict[str, Node] = {}
        level = [path]
        while level:
            nodes = await asyncio.gather(*(self._get(place, self._call) for place in level))
            names = await asyncio.gather(*(self._children(place, self._call) for place in level))
            found |= {p: node for p, node in zip(level, nodes, strict=True) if node is not None}
            level = [
                f"{'' if parent == '/' else parent}/{name}"
                for parent, below in zip(level, names, strict=True)
                for name in below
            ]
        return dict(sorted(found.items()))

    async def multi(self, operations: Sequence[Operation]) -> list[Result]:
        session_id = 0
        for operation in operations:
            check_path(operation.path)
            if isinstance(operation, Create) and operation.session is not None:
                session_id = operation.session.id
                if operation.session.expired:
                    raise SessionExpired(session_id)
        sent_ms = _CLOCK.monotonic_ms()
        session = self._session
        answers = await self._call(
            lambda client: transaction(
                client, operations, self._locate, self._security.acl
            ).commit_async(),
            "",
            session_id=session_id,
        )
        if session is not None:
            session.confirm(sent_ms)
        refusal = first_refusal(operations, answers)
        if refusal is not None:
            operation, error = refusal
            expected = -1 if isinstance(operation, Create) else operation.version
            raise self._connection.translate(error, operation.path, expected)
        return [
            result_of(operation, answer, self._chroot)
            for operation, answer in zip(operations, answers, strict=True)
        ]

    async def open_session(self, lease_ms: int) -> ZookeeperSession:
        assert self._session is None or self._session.expired, "one session at a time"
        if lease_ms != self._connection.lease_ms:
            await self._reconnect(lease_ms)
        sent_ms = _CLOCK.monotonic_ms()
        session_id, password, granted_ms = await self._connection.granted()
        if granted_ms < lease_ms:
            raise StoreDenied(
                f"ZooKeeper at {self._hosts} grants sessions of {granted_ms} ms and not of"
                f" {lease_ms} ms: raise its maxSessionTimeout, or lower broker.session.timeout.ms"
            )
        self._generation += 1
        session = ZookeeperSession(
            session_id,
            self._generation,
            lease_ms,
            granted_ms,
            f"{session_id:x}:{password.hex()}",
            sync=self._sync,
            leave=self._leave,
        )
        session.confirmed_ms = sent_ms
        self._session = session
        return session

    async def end_session(self, credential: str) -> None:
        session_id, _, password = credential.partition(":")
        try:
            client_id = int(session_id, 16), bytes.fromhex(password)
        except ValueError as error:
            raise StoreDenied(f"no session of ZooKeeper's is meant by {credential!r}") from error
        connection = EnsembleConnection(
            self._hosts,
            _FIRST_LEASE_MS,
            security=self._security,
            patience_ms=_PATIENCE_MS,
            listener=_NO_LISTENER,
            client_id=client_id,
        )
        # If the session has ended already, this call ends the old connection and begins another.
        await connection.start(_PATIENCE_MS)
        await connection.stop()

    async def history(self) -> str:
        await self._sync()
        return f"{_MARK_KIND}:{self._connection.last_zxid:x}"

    async def require_history(self, mark: str) -> None:
        kind, _, number = mark.partition(":")
        await self._sync()
        found = self._connection.last_zxid
        if kind != _MARK_KIND or found < int(number, 16):
            raise StoreRolledBack(
                f"ZooKeeper at {self._hosts} is at transaction {found:x}, but this broker has seen"
                f" {mark}: it holds older data, or is another ensemble. Bring the newest data back,"
                " or remove ottla-store.mark from the log directory to accept the loss of newer"
                " decisions"
            )

    async def rewrite_acls(self) -> int:
        """Give every node the ACL that a new one would get; return the number of nodes."""
        count = 0
        level = ["/"]
        while level:
            for path in level:
                place, acl = self._locate(path), self._security.acl(path)
                with contextlib.suppress(NoNode):
                    await self._call(
                        partial(KazooClient.set_acls_async, path=place, acls=acl), path
                    )
                    count += 1
            level = [
                f"{'' if parent == '/' else parent}/{name}"
                for parent in level
                for name in await self.children(parent)
            ]
        return count

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        if self._session is not None:
            self._session.end()
        await self._connection.stop()

    def on_connected(self, connection: EnsembleConnection) -> None:
        """Act on a new connection, the first or a later one."""
        if getattr(self, "_connection", None) is connection:
            self._zookeeper_watches.use(connection)

    def on_lost(self, session_id: int) -> None:
        """Act on an expired session."""
        if self._session is not None and self._session.id == session_id:
            self._session.end()

    async def _connect(self, lease_ms: int) -> EnsembleConnection:
        connection = EnsembleConnection(
            self._hosts,
            lease_ms,
            security=self._security,
            patience_ms=_PATIENCE_MS,
            listener=self,
        )
        await connection.start(self._timeout_ms)
        return connection

    async def _reconnect(self, lease_ms: int) -> None:
        """Switch to a new connection with its own session, and end the previous one."""
        before, self._connection = self._connection, await self._connect(lease_ms)
        self._zookeeper_watches.use(self._connection)
        await before.stop()

    async def _leave(self) -> None:
        # Without a connection only its lease can end the session.
        if not self._closed and self._connection.connected:
            with contextlib.suppress(StoreUnavailable):
                await self._reconnect(self._connection.lease_ms)

    async def _call(self, request: Request, path: str, *, session_id: int = 0) -> Any:
        if self._closed:
            raise StoreUnavailable(f"the store at {self._hosts} was closed")
        return await self._connection.call(request, path, session_id=session_id)

    async def _read_newest(self, request: Request, path: str) -> Any:
        """Read the leader's state, because a server may lag behind it.

        A `sync` is sent first; requests are answered in order.
        """

        def ask(client: KazooClient) -> Any:
            client.sync_async(self._locate("/"))
            return request(client)

        return await self._call(ask, path)

    async def _get(self, path: str, read: Read) -> Node | None:
        place = self._locate(path)
        try:
            data, stat = await read(lambda client: client.get_async(place), path)
        except NoNode:
            return None
        return Node(data, stat.version, stat.ephemeralOwner)

    async def _children(self, path: str, read: Read) -> list[str]:
        place = self._locate(path)
        try:
            names = await read(lambda client: client.get_children_async(place), path)
        except NoNode:
            return []
        # ZooKeeper's own nodes are left out.
        return sorted(name for name in names if (place, name) != ("/", "zookeeper"))

    async def _sync(self) -> None:
        """Ask the ensemble's leader, whose answer confirms the session."""
        sent_ms = _CLOCK.monotonic_ms()
        session = self._session
        place = self._locate("/")
        await self._call(
            lambda client: client.sync_async(place),
            "/",
            session_id=0 if session is None or session.expired else session.id,
        )
        if session is not None:
            session.confirm(sent_ms)

    async def _make_root(self) -> None:
        """Create the chroot part by part; parts with unreadable parents are assumed to exist."""
        parts = self._chroot.split("/")
        for length in range(2, len(parts) + 1):
            await self._make_place("/".join(parts[:length]))
        # A client without permission to read or change the root fails here.
        await self.children("/")
        if self._security.access.protects and self._chroot:
            await self._require_writable()

    async def _require_writable(self) -> None:
        """Raise StoreDenied if the root's ACL excludes this client.

        Test with a write that must fail.
        """
        place = self._locate("/")
        with contextlib.suppress(BadVersion):
            await self._call(lambda client: client.set_async(place, b"", _NO_VERSION), "/")

    async def _make_place(self, place: str) -> None:
        if await self._call(lambda client: client.exists_async(place), place) is None:
            with contextlib.suppress(NodeExists):
                await self._call(
                    lambda client: client.create_async(place, b"", acl=self._security.acl("/")),
                    place,
                )

    def _locate(self, path: str) -> str:
        """Return the path in the ensemble."""
        return (self._chroot + path).rstrip("/") or "/"


def transaction(
    client: KazooClient,
    operations: Sequence[Operation],
    locate: Callable[[str], str],
    acl: Callable[[str], Any],
) -> Any:
    """Build kazoo's transaction without sending it.

    `locate` returns the ensemble's path for one of ours, `acl` the ACL of a new node.
    """
    made = client.transaction()
    for operation in operations:
        place = locate(operation.path)
        match operation:
            case Create():
                made.create(
                    place,
                    operation.data,
                    acl=acl(operation.path),
                    ephemeral=operation.session is not None,
                    sequence=operation.sequential,
                )
            case Set():
                made.set_data(place, operation.data, operation.version)
            case Delete():
                made.delete(place, operation.version)
            case Check():
                made.check(place, operation.version)
    return made


def first_refusal(
    operations: Sequence[Operation], answers: Sequence[Any]
) -> tuple[Operation, Exception] | None:
    """Return the refused operation and its error.

    The errors of the other operations only say that one failed.
    """
    for operation, answer in zip(operations, answers, strict=True):
        if isinstance(answer, Exception) and not isinstance(
            answer, RolledBackError | RuntimeInconsistency
        ):
            return operation, answer
    return None


def result_of(operation: Operation, answer: Any, chroot: str) -> Result:
    """The result in `Store.multi` of one operation."""
    match operation:
        case Create():
            return str(answer)[len(chroot) :]
        case Set():
            return int(answer.version)
    return None
