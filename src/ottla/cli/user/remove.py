"""`ottla user remove`: removes a user."""

import click

from ottla.cli import options
from ottla.cli.connect import with_admin


@click.command()
@click.argument("name")
@options.bootstrap
def remove(name: str, bootstrap: str) -> None:
    """Remove a user, who cannot log in any more.

    \b
    ottla user remove alice

    ACLs that name the user stay, and so do connections that are logged in.
    """  # noqa: D301
    with_admin(bootstrap, lambda admin: admin.users.remove(name))
    click.echo(f"removed user {name}")
