"""Callbacks for changes of nodes. They run on the loop, after the change."""

import asyncio
from collections.abc import Callable, Iterable

from ottla.coordination.interface.operations import ChangedPaths

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

    def add_data(self, path: str, callback: Callback) -> _Watch:
        return self._add(self._data, path, callback)

    def add_children(self, path: str, callback: Callback) -> _Watch:
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
