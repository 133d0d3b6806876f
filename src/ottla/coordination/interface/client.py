"""The methods that the clients of all stores share."""

from collections.abc import Callable, Sequence
from typing import Protocol

from ottla.coordination.interface.store import Create, Node, NodeExists, Operation, Result, Watch


class Watchers(Protocol):
    """The watches of a client, by path."""

    def add_data(self, path: str, callback: Callable[[], None]) -> Watch: ...

    def add_children(self, path: str, callback: Callable[[], None]) -> Watch: ...


class StoreClient:
    """The shared part of each implementation of `Store`, whose docstrings describe its methods."""

    def __init__(self, watchers: Watchers) -> None:
        self._watchers = watchers

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
        return self._watchers.add_data(path, callback)

    def watch_children(self, path: str, callback: Callable[[], None]) -> Watch:
        return self._watchers.add_children(path, callback)
