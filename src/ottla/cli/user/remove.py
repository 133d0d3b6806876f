"""`ottla user remove`: removes a user."""

import click

from ottla.cli.common import options
from ottla.cli.user.users import with_users


@click.command()
@click.argument("name")
@options.store
@options.bootstrap
def remove(name: str, store: str | None, bootstrap: str) -> None:
    """Remove a user, who cannot log in any more.

    \b
    ottla user remove alice

    Its connections are closed. ACLs that name the user stay.
    """  # noqa: D301
    with_users(bootstrap, store, lambda users: users.remove(name))
    click.echo(f"removed user {name}")
