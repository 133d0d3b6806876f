"""How a command reaches its cluster: a loop for one piece of work, and errors without waiting."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable
from contextlib import asynccontextmanager
from difflib import get_close_matches
from typing import Any, TypeVar

from ottla.base.errors import ErrorCode, OttlaError
from ottla.client.admin import Admin, AdminOptions
from ottla.client.connection.cluster import Cluster

Result = TypeVar("Result")


def run(work: Coroutine[Any, Any, Result]) -> Result:
    """Run `work` to its end; ctrl-C ends it in order and raises KeyboardInterrupt."""
    return asyncio.run(work)


async def reach(cluster: Cluster) -> None:
    """Raise at once where no broker answers: a person waits for a word, not for a retry."""
    await cluster.any_connection()


@asynccontextmanager
async def administration(bootstrap: str) -> AsyncIterator[Admin]:
    """An `Admin` of a cluster that answers."""
    async with Admin(bootstrap, AdminOptions(client_id="ottla-cli")) as admin:
        await reach(admin.connections)
        yield admin


def with_admin(bootstrap: str, work: Callable[[Admin], Awaitable[Result]]) -> Result:
    """What `work` returns when given an `Admin`."""

    async def main() -> Result:
        async with administration(bootstrap) as admin:
            return await work(admin)

    return run(main())


def naming_nearest(error: OttlaError, names: Iterable[str], known: Iterable[str]) -> OttlaError:
    """`error` about settings; where the broker did not propose a name, one of `known` is."""
    if error.code not in (ErrorCode.INVALID_CONFIG, ErrorCode.INVALID_REQUEST):
        return error
    if "did you mean" in error.message:
        return error
    return OttlaError(error.code, "; ".join([error.message, *nearest_names(names, known)]))


def nearest_names(names: Iterable[str], known: Iterable[str]) -> list[str]:
    """For each of `names` that is not `known`, and is like one that is, a question that says so."""
    known = list(known)
    hints: list[str] = []
    for name in names:
        near = [] if name in known else get_close_matches(name, known, n=2, cutoff=0.6)
        if near:
            hints.append(f"{name}: did you mean {' or '.join(near)}?")
    return hints
