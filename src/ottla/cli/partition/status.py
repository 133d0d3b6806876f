"""`ottla partition status`: the partitions that are moving, and their progress."""

import click

from ottla.cli.common import options
from ottla.cli.common.completion import partitions
from ottla.cli.common.connect import with_admin
from ottla.cli.text import plans
from ottla.cli.text.output import show
from ottla.cli.text.places import METAVAR, named
from ottla.client.admin import Admin
from ottla.operations.moves import under_way, wait
from ottla.operations.plans import MoveProgress


@click.command()
@click.argument("words", nargs=-1, metavar=f"[{METAVAR}]", shell_complete=partitions)
@click.option("--wait", "waits", is_flag=True, help="Return when nothing of it moves any more.")
@options.bootstrap
@options.output
def status(words: tuple[str, ...], waits: bool, bootstrap: str, form: str) -> None:
    """Show which partitions are moving, and how far they are.

    \b
    ottla partition status
    ottla partition status flights-0 --wait
    """  # noqa: D301

    async def work(admin: Admin) -> list[MoveProgress]:
        names = await named(admin, words) if words else None
        if waits:
            await wait(admin, names, plans.on_progress(form))
        return await under_way(admin, names)

    rows = plans.status_rows(with_admin(bootstrap, work))
    show(form, rows, plans.STATUS_COLUMNS, empty="nothing moves")
