"""A session of a ZooKeeper client, with the last confirmation by the ensemble's leader."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Literal

from kazoo.protocol.states import EventType

from ottla.base.clock import SystemClock
from ottla.coordination.interface.client import StoreSession, Watches, call_on_loop
from ottla.coordination.interface.errors import StoreError
from ottla.coordination.interface.operations import ChangedPaths
from ottla.coordination.interface.store import Watch
from ottla.coordination.zookeeper.connection import EnsembleConnection

_CONFIRMATIONS_PER_LEASE = 6
_CLOCK = SystemClock()


class ZookeeperSession(StoreSession):
    """A session until ZooKeeper reports that it has expired, or it is closed.

    `sync` asks the ensemble's leader, because any server answers kazoo's own pings, even one that
    has lost its leader. `leave` ends the session. `granted_ms` is the session timeout that
    ZooKeeper granted for `lease_ms`.
    """

    def __init__(
        self,
        session_id: int,
        generation: int,
        lease_ms: int,
        granted_ms: int,
        credential: str,
        *,
        sync: Callable[[], Awaitable[None]],
        leave: Callable[[], Awaitable[None]],
    ) -> None:
        super().__init__(generation)
        self.id = session_id
        self.credential = credential
        # ZooKeeper rounds the end up to a tick, and followers report their clients' heartbeats to
        # the leader half a tick late. A timeout is two ticks or more, unless the server's
        # minSessionTimeout is lower.
        self.ends_within_ms = 2 * granted_ms
        self.confirmed_ms = _CLOCK.monotonic_ms()
        self._interval_s = lease_ms / _CONFIRMATIONS_PER_LEASE / 1000
        self._sync = sync
        self._leave = leave
        self._keeper = self._loop.create_task(self._keep_confirmed())

    def confirm(self, sent_ms: int) -> None:
        """Note that the leader answered, in this session, a request sent at `sent_ms`."""
        if not self.expired:
            self.confirmed_ms = max(self.confirmed_ms, sent_ms)

    def end(self) -> None:
        """Note that the session has ended, and notify its holder."""
        if self._note_expired():
            self._keeper.cancel()

    async def close(self) -> None:
        if not self.expired:
            self.end()
            await self._leave()

    async def _keep_confirmed(self) -> None:
        while True:
            await asyncio.sleep(self._interval_s)
            if _CLOCK.monotonic_ms() - self.confirmed_ms >= self._interval_s * 1000:
                try:
                    await self._sync()
                except StoreError:
                    # The session stays unconfirmed; the next round asks again.
                    continue


Kind = Literal["data", "children"]


class ZookeeperWatches(Watches):
    """The watches of one client. `locate` gives the path in the ensemble for one of ours."""

    def __init__(self, locate: Callable[[str], str]) -> None:
        super().__init__()
        self._locate = locate
        self._loop = asyncio.get_running_loop()
        self._connection: EnsembleConnection | None = None

    def add_data(self, path: str, callback: Callable[[], None]) -> Watch:
        watch = super().add_data(path, callback)
        self._arm("data", path)
        return watch

    def add_children(self, path: str, callback: Callable[[], None]) -> Watch:
        watch = super().add_children(path, callback)
        self._arm("children", path)
        return watch

    def use(self, connection: EnsembleConnection) -> None:
        """Set all watches on a connection and call all: changes may have been missed."""
        self._connection = connection
        for path in self.data_paths:
            self._arm("data", path)
        for path in self.children_paths:
            self._arm("children", path)
        self.fire_all(self._loop)

    def _arm(self, kind: Kind, path: str) -> None:
        connection = self._connection
        if connection is None:
            return
        place = self._locate(path)
        on_event = partial(self._on_event, connection, kind, path)
        if kind == "data":
            connection.send(lambda client: client.exists_async(place, watch=on_event), _ignore)
        else:
            connection.send(
                lambda client: client.get_children_async(place, watch=on_event),
                lambda error: self._await_creation(connection, path, error),
            )

    def _await_creation(self, connection: EnsembleConnection, path: str, error: str) -> None:
        """Watch for the parent, because there are no children to watch yet."""
        if error == "NoNodeError" and connection is self._connection:
            on_event = partial(self._on_event, connection, "children", path)
            place = self._locate(path)

            def ask(client: Any) -> Any:
                result = client.exists_async(place, watch=on_event)
                # The parent may have been created meanwhile.
                result.rawlink(lambda done: done.value and on_event(None))
                return result

            connection.send(ask, _ignore)

    def _on_event(self, connection: EnsembleConnection, kind: Kind, path: str, event: Any) -> None:
        """Act on a change, or on a watch lost with its connection. Runs on kazoo's thread."""
        if event is None or event.type != EventType.NONE:
            call_on_loop(self._loop, self._notify, connection, kind, path)

    def _notify(self, connection: EnsembleConnection, kind: Kind, path: str) -> None:
        if connection is not self._connection:
            return
        changes = ChangedPaths()
        watched = self.data_paths if kind == "data" else self.children_paths
        if path in watched:
            self._arm(kind, path)
            (changes.data if kind == "data" else changes.children)[path] = None
            self.fire(changes, self._loop)


def _ignore(_error: str) -> None:
    """Ignore the error: the connection is lost, and the next one sets the watch."""
