"""Watches that stay until they are cancelled, made of ZooKeeper's, which fire only once.

Each is set again before its callback is called, on the same connection and so before the
callback's reads: no change is missed between. After a new connection all are set and called.
"""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any, Literal

from kazoo.protocol.states import EventType

from ottla.coordination.interface.operations import ChangedPaths
from ottla.coordination.interface.store import Watch
from ottla.coordination.interface.watches import Watches
from ottla.coordination.zookeeper.connection import EnsembleConnection

Kind = Literal["data", "children"]


class ZookeeperWatches:
    """The watches of one client. `locate` gives the path in the ensemble for one of ours."""

    def __init__(self, locate: Callable[[str], str]) -> None:
        self._locate = locate
        self._loop = asyncio.get_running_loop()
        self._watches = Watches()
        self._connection: EnsembleConnection | None = None

    def add_data(self, path: str, callback: Callable[[], None]) -> Watch:
        watch = self._watches.add_data(path, callback)
        self._arm("data", path)
        return watch

    def add_children(self, path: str, callback: Callable[[], None]) -> Watch:
        watch = self._watches.add_children(path, callback)
        self._arm("children", path)
        return watch

    def use(self, connection: EnsembleConnection) -> None:
        """Set all watches on a connection and call all: changes may have been missed."""
        self._connection = connection
        for path in self._watches.data_paths:
            self._arm("data", path)
        for path in self._watches.children_paths:
            self._arm("children", path)
        self._watches.fire_all(self._loop)

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
            try:
                self._loop.call_soon_threadsafe(self._notify, connection, kind, path)
            except RuntimeError:
                return

    def _notify(self, connection: EnsembleConnection, kind: Kind, path: str) -> None:
        if connection is not self._connection:
            return
        changes = ChangedPaths()
        watched = self._watches.data_paths if kind == "data" else self._watches.children_paths
        if path in watched:
            self._arm(kind, path)
            (changes.data if kind == "data" else changes.children)[path] = None
            self._watches.fire(changes, self._loop)


def _ignore(_error: str) -> None:
    """Ignore the error: the connection is lost, and the next one sets the watch."""
