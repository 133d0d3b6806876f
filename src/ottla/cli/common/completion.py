"""Shell completion of topics and other names, if the cluster answers quickly."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable

import click

from ottla.base.errors import OttlaError
from ottla.cli.common.connect import administration
from ottla.client.admin import Admin
from ottla.client.connection.cluster import connections_of

# The user waits for the completion.
_PATIENCE_S = 2.0
_Completion = Callable[[click.Context, click.Parameter, str], list[str]]


def _completion(find: Callable[[Admin, str], Awaitable[Iterable[str]]]) -> _Completion:
    """Return a completion by the found names that begin with the typed text."""

    async def found(bootstrap: str, incomplete: str) -> Iterable[str]:
        async with asyncio.timeout(_PATIENCE_S), administration(bootstrap) as admin:
            return await find(admin, incomplete)

    def complete(context: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
        try:
            names = asyncio.run(found(context.params["bootstrap"], incomplete))
        except (OttlaError, TimeoutError):
            # The command itself reports the error later.
            return []
        return sorted(name for name in names if name.startswith(incomplete))

    return complete


@_completion
async def topics(admin: Admin, _incomplete: str) -> list[str]:
    """Complete names of topics."""
    return await connections_of(admin).topic_names()


@_completion
async def groups(admin: Admin, _incomplete: str) -> list[str]:
    """Complete names of groups."""
    return await admin.groups.list()


@_completion
async def partitions(admin: Admin, incomplete: str) -> list[str]:
    """Complete names of topics and, after a topic's full name, its partitions."""
    views = await admin.topics.all(internal=True)
    found = [view.name for view in views]
    for view in views:
        if incomplete.startswith(view.name):
            found += [f"{view.name}-{one.partition}" for one in view.partitions]
    return found


@_completion
async def brokers(admin: Admin, _incomplete: str) -> list[str]:
    """Complete ids of live brokers."""
    return [str(broker_id) for broker_id in await admin.cluster.brokers()]


@_completion
async def transactional_ids(admin: Admin, _incomplete: str) -> list[str]:
    """Complete the transactional ids that coordinators know."""
    return [one.transactional_id for one in await admin.transactions.all()]
