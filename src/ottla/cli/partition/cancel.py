"""`ottla partition cancel`: cancels moves in progress."""

import click

from ottla.base.ids import TopicPartition
from ottla.cli.common import options
from ottla.cli.common.completion import partitions
from ottla.cli.common.connect import with_admin
from ottla.cli.text.output import show
from ottla.cli.text.places import METAVAR, few, named
from ottla.client.admin import Admin
from ottla.operations import moves


@click.command()
@click.argument("words", nargs=-1, metavar=f"[{METAVAR}]", shell_complete=partitions)
@click.option("--all", "every", is_flag=True, help="All that move.")
@options.bootstrap
@options.output
def cancel(words: tuple[str, ...], every: bool, bootstrap: str, form: str) -> None:
    """Cancel moves that have not ended. Partitions go back to where they were.

    \b
    ottla partition cancel flights-0
    ottla partition cancel --all
    """  # noqa: D301
    if every == bool(words):
        raise click.UsageError("name partitions, or say --all")

    async def work(admin: Admin) -> list[TopicPartition]:
        return await moves.cancel(admin, await named(admin, words) if words else None)

    cancelled = with_admin(bootstrap, work)
    if form == "json":
        show("json", [{"partition": str(name), "cancelled": True} for name in cancelled], [])
    else:
        click.echo(f"Cancelled {few(cancelled)}." if cancelled else "Nothing of it moves.")
