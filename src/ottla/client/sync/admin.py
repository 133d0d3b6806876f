"""Administration as plain calls."""

import asyncio
from collections.abc import Callable, Iterable
from typing import Any, Self

from ottla.client.admin import Admin as AsyncAdmin
from ottla.client.admin import AdminOptions
from ottla.client.sync.loop_thread import LoopThread


class Admin:
    """`ottla.client.admin.Admin` as plain calls: every method of it, waited for."""

    def __init__(self, bootstrap: str | Iterable[str], options: AdminOptions | None = None) -> None:
        self._thread = LoopThread("ottla-admin")
        self._closed = False
        self._admin = self._thread.make(lambda: AsyncAdmin(bootstrap, options))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = getattr(self._admin, name)
        if name.startswith("_") or not asyncio.iscoroutinefunction(method):
            raise AttributeError(f"Admin has no call {name!r}")

        def call(*arguments: Any, **named: Any) -> Any:
            return self._thread.call(method(*arguments, **named))

        return call

    def close(self) -> None:
        """Close all connections."""
        if self._closed:
            return
        self._closed = True
        self._thread.end(self._admin.close())
