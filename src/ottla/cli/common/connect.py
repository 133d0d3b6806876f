"""Connects a command to its cluster: one event loop per command, and no retries on errors.

An asynchronous verb with `@connected` gets an `Admin`. A verb that asks the user a question is
synchronous and calls `with_admin`, because ctrl-C could not end a question inside a loop.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import wraps
from typing import Any, TypeVar

from ottla.cli.common import options
from ottla.client.admin import Admin
from ottla.client.common.errors import ConnectionFailed
from ottla.client.connection.cluster import Cluster, connections_of

Result = TypeVar("Result")


async def reach(cluster: Cluster) -> None:
    """Raise an error at once if no broker answers. There are no retries, because the user waits."""
    await cluster.any_connection()
    if cluster.options.security.identity is None:
        # ApiVersions is answered even without a required login, so another request is needed.
        # It is tried twice, because a broker may be stopping at this moment.
        try:
            await cluster.refresh()
        except ConnectionFailed:
            await cluster.any_connection()
            await cluster.refresh()


@asynccontextmanager
async def administration(bootstrap: str) -> AsyncIterator[Admin]:
    """Yield an `Admin` of a cluster that has answered."""
    async with Admin(bootstrap, client_id="ottla-cli") as admin:
        await reach(connections_of(admin))
        yield admin


def with_admin(bootstrap: str, work: Callable[[Admin], Awaitable[Result]]) -> Result:
    """Run `work` with an `Admin`, and return the result of `work`."""

    async def main() -> Result:
        async with administration(bootstrap) as admin:
            return await work(admin)

    return asyncio.run(main())


def connected(verb: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """Add `--bootstrap` and `--config`, and run `verb` with an `Admin` as its argument `admin`."""

    @wraps(verb)
    def run_verb(*arguments: Any, bootstrap: str, **given: Any) -> None:
        with_admin(bootstrap, lambda admin: verb(*arguments, admin=admin, **given))

    return options.bootstrap(run_verb)
