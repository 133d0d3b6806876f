"""How a command reaches its cluster: a loop for one piece of work, and errors without waiting."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from ottla.client.admin import Admin
from ottla.client.common.errors import ConnectionFailed
from ottla.client.connection.cluster import Cluster, connections_of

Result = TypeVar("Result")


def run(work: Coroutine[Any, Any, Result]) -> Result:
    """Run `work` to its end; ctrl-C ends it in order and raises KeyboardInterrupt."""
    return asyncio.run(work)


async def reach(cluster: Cluster) -> None:
    """Raise at once where no broker answers: a person waits, so nothing is tried again."""
    await cluster.any_connection()
    if cluster.options.security.identity is None:
        # Where clients must log in, versions are answered and the next request is not. Once more,
        # as a broker may stop just now.
        try:
            await cluster.refresh()
        except ConnectionFailed:
            await cluster.any_connection()
            await cluster.refresh()


@asynccontextmanager
async def administration(bootstrap: str) -> AsyncIterator[Admin]:
    """An `Admin` of a cluster that answers."""
    async with Admin(bootstrap, client_id="ottla-cli") as admin:
        await reach(connections_of(admin))
        yield admin


def with_admin(bootstrap: str, work: Callable[[Admin], Awaitable[Result]]) -> Result:
    """What `work` returns when given an `Admin`."""

    async def main() -> Result:
        async with administration(bootstrap) as admin:
            return await work(admin)

    return run(main())
