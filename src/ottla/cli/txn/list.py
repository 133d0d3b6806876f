"""`ottla txn list`: transactional ids and their states."""

from dataclasses import asdict

import click

from ottla.cli.common import options
from ottla.cli.common.connect import with_admin
from ottla.cli.text.output import show
from ottla.cli.text.words import span

_COLUMNS = ["transactional_id", "state", "producer_id"]


@click.command(name="list")
@click.option("--state", "states", multiple=True, help="Only those in this state: Ongoing, …")
@click.option("--open-for", type=span, help="Only those open for longer than this: 30s, 5m.")
@options.bootstrap
@options.output
def list_(states: tuple[str, ...], open_for: int | None, bootstrap: str, form: str) -> None:
    """List transactional ids and their states.

    \b
    ottla txn list
    ottla txn list --state Ongoing --open-for 5m
    """  # noqa: D301
    found = with_admin(
        bootstrap,
        lambda admin: admin.transactions.all(
            states=states, open_for_ms=-1 if open_for is None else open_for
        ),
    )
    show(form, [asdict(each) for each in found], _COLUMNS, empty="there is no transactional id")
