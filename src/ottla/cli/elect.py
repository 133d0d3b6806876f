"""`ottla partition elect`: a leader by command."""

from typing import Any

import click

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import TopicPartition
from ottla.cli import options
from ottla.cli.connect import with_admin
from ottla.cli.moving import leaders_seen
from ottla.cli.output import show
from ottla.cli.places import METAVAR, few, named
from ottla.client.admin import Admin
from ottla.client.admin.partitions import ElectionKind, PartitionStanding
from ottla.client.connection.view import NO_LEADER

_COLUMNS = ["partition", "outcome", "leader", "leader_epoch", "note"]


@click.command()
@click.argument("words", nargs=-1, metavar=f"[{METAVAR}]")
@click.option("--preferred", is_flag=True, help="The first replica, if in sync. The default.")
@click.option("--unclean", is_flag=True, help="Whoever lives; acknowledged records may be lost.")
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
    """Elect leaders; the exit code is 1 where one was wanted and there is none.

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

    async def work(admin: Admin) -> list[dict[str, Any]]:
        names = None if every else await named(admin, words)
        outcomes = await admin.partitions.elect_leaders(kind, names)
        elected = [name for name, error in outcomes.items() if error is None]

        def as_wanted(one: PartitionStanding) -> bool:
            if one.name not in elected:
                return True
            return one.leader != NO_LEADER if unclean else one.leader == one.replicas[0]

        standings = await leaders_seen(admin, list(outcomes), as_wanted)
        return [_row(name, error, standings.get(name)) for name, error in outcomes.items()]

    rows = with_admin(bootstrap, work)
    show(form, rows, _COLUMNS, empty="all are led as wanted already")
    if any(row["outcome"] == "refused" for row in rows):
        context.exit(1)


def _row(
    name: TopicPartition, error: OttlaError | None, standing: PartitionStanding | None
) -> dict[str, Any]:
    if error is None:
        outcome, note = "elected", None
    elif error.code is ErrorCode.ELECTION_NOT_NEEDED:
        outcome, note = "not needed", None
    else:
        outcome, note = "refused", error.message
    led = standing is not None and not standing.is_offline
    return {
        "partition": str(name),
        "outcome": outcome,
        "leader": standing.leader if led and standing is not None else None,
        "leader_epoch": None if standing is None else standing.leader_epoch,
        "note": note,
    }
