"""`ottla partition elect`: elects leaders."""

from typing import Any

import click

from ottla.base.ids import TopicPartition
from ottla.cli.common import options
from ottla.cli.common.completion import partitions
from ottla.cli.common.connect import with_admin
from ottla.cli.text.output import show
from ottla.cli.text.places import METAVAR, few, named
from ottla.client.admin import Admin
from ottla.client.admin.partitions import ElectionKind
from ottla.operations import election
from ottla.operations.election import Election

_COLUMNS = ["partition", "outcome", "leader", "leader_epoch", "note"]


@click.command()
@click.argument("words", nargs=-1, metavar=f"[{METAVAR}]", shell_complete=partitions)
@click.option("--preferred", is_flag=True, help="The first replica, if in sync. The default.")
@click.option("--unclean", is_flag=True, help="Any live replica; acknowledged records may be lost.")
@click.option("--all", "every", is_flag=True, help="All partitions that need it.")
@options.yes
@options.bootstrap
@options.output
@click.pass_context
def elect(
    context: click.Context,
    words: tuple[str, ...],
    preferred: bool,
    unclean: bool,
    every: bool,
    yes: bool,
    bootstrap: str,
    form: str,
) -> None:
    """Elect leaders. The exit code is 1 if any election was refused.

    \b
    ottla partition elect flights-0
    ottla partition elect --preferred --all
    ottla partition elect --unclean flights-3

    An unclean election is for partitions without a leader whose last in-sync replicas are lost for
    good: what only those had is gone then.
    """  # noqa: D301
    if preferred and unclean:
        raise click.UsageError("either --preferred or --unclean")
    if every == bool(words):
        raise click.UsageError("name partitions, or say --all")
    kind = ElectionKind.UNCLEAN if unclean else ElectionKind.PREFERRED

    async def look(admin: Admin) -> list[TopicPartition]:
        names = set(await named(admin, words))
        standings = await admin.partitions.standings()
        return [one.name for one in standings if (every or one.name in names) and one.is_offline]

    if unclean and not yes:
        offline = with_admin(bootstrap, look)
        if offline:
            options.confirm(
                f"Elect leaders of {few(offline)} that may lack acknowledged records? What they "
                "lack is lost for ever."
            )

    async def work(admin: Admin) -> list[Election]:
        return await election.elect(admin, kind, None if every else await named(admin, words))

    found = with_admin(bootstrap, work)
    show(form, [_row(one) for one in found], _COLUMNS, empty="all are led as wanted already")
    if any(one.outcome == "refused" for one in found):
        context.exit(1)


def _row(one: Election) -> dict[str, Any]:
    return {
        "partition": str(one.name),
        "outcome": one.outcome,
        "leader": one.leader,
        "leader_epoch": None if one.standing is None else one.standing.leader_epoch,
        "note": one.refusal,
    }
