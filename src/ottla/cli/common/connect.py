"""Connects a command to its cluster: one loop per command, and no retries on errors.

An asynchronous verb with `@connected` gets an `Admin`. A verb that asks a question in between is
synchronous and calls `with_admin`, because a loop would keep ctrl-C from ending the question.
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
    """Raise at once if no broker answers: a person is waiting, so there are no retries."""
    await cluster.any_connection()
    if cluster.options.security.identity is None:
        # If a login is required, ApiVersions is answered and the next request is not. Tried twice,
        # because a broker may be stopping at this moment.
        try:
            await cluster.refresh()
        except ConnectionFailed:
            await cluster.any_connection()
            await cluster.refresh()


@asynccontextmanager
async def administration(bootstrap: str) -> AsyncIterator[Admin]:
    """An `Admin` of a cluster that has answered."""
    async with Admin(bootstrap, client_id="ottla-cli") as admin:
        await reach(connections_of(admin))
        yield admin


def with_admin(bootstrap: str, work: Callable[[Admin], Awaitable[Result]]) -> Result:
    """Run `work` with an `Admin`, and return its result."""

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
