"""`ottla token list`: the delegation tokens there are."""

import click

from ottla.cli.common import options
from ottla.cli.common.connect import with_admin
from ottla.cli.text.output import show
from ottla.cli.text.words import principal
from ottla.cli.token.rows import COLUMNS, row
from ottla.security.principal import Principal


@click.command(name="list")
@click.option(
    "--owner",
    "owners",
    multiple=True,
    type=principal,
    metavar="PRINCIPAL",
    help="Only those of this user, or that it may renew. May be given again.",
)
@options.bootstrap
@options.output
def list_(owners: tuple[Principal, ...], bootstrap: str, form: str) -> None:
    """List the tokens that you may see, without their secrets.

    \b
    ottla token list
    ottla token list --owner User:bob
    """  # noqa: D301
    found = with_admin(bootstrap, lambda admin: admin.tokens.find(owners or None))
    rows = [row(one.token) for one in sorted(found, key=lambda each: each.token.issued_ms)]
    show(form, rows, COLUMNS, empty="there are no tokens that you may see")
