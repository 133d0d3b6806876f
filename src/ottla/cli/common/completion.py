"""Shell completion of topics and other names, if the cluster answers quickly."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable

import click

from ottla.base.errors import OttlaError
from ottla.cli.common.connect import administration
from ottla.client.admin import Admin
from ottla.client.connection.cluster import connections_of

# A person waits for the completion.
_PATIENCE_S = 2.0


def topics(context: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """The topics whose names begin with `incomplete`."""
    return _names(context, incomplete, lambda admin: connections_of(admin).topic_names())


def groups(context: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """The groups whose names begin with `incomplete`."""

    async def ask(admin: Admin) -> list[str]:
        return [entry.group_id for entry in await admin.groups.all()]

    return _names(context, incomplete, ask)


def partitions(context: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """The topics with this prefix; after a topic's full name, its partitions as well."""

    async def ask(admin: Admin) -> list[str]:
        views = await admin.topics.all(internal=True)
        found = [view.name for view in views]
        for view in views:
            if incomplete.startswith(view.name):
                found += [f"{view.name}-{one.index}" for one in view.partitions]
        return found

    return _names(context, incomplete, ask)


def brokers(context: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """The ids of live brokers."""

    async def ask(admin: Admin) -> list[str]:
        return [str(one.broker_id) for one in (await admin.cluster.describe()).brokers]

    return _names(context, incomplete, ask)


def transactional_ids(
    context: click.Context, _param: click.Parameter, incomplete: str
) -> list[str]:
    """The transactional ids that coordinators know."""

    async def ask(admin: Admin) -> list[str]:
        return [one.transactional_id for one in await admin.transactions.all()]

    return _names(context, incomplete, ask)


def _names(
    context: click.Context, incomplete: str, ask: Callable[[Admin], Awaitable[Iterable[str]]]
) -> list[str]:
    async def found() -> Iterable[str]:
        async with (
            asyncio.timeout(_PATIENCE_S),
            administration(context.params["bootstrap"]) as admin,
        ):
            return await ask(admin)

    try:
        return sorted(name for name in asyncio.run(found()) if name.startswith(incomplete))
    except (OttlaError, TimeoutError):
        # The command itself reports the error.
        return []
