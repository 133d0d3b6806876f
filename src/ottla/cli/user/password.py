"""`ottla user password`: sets a user's password."""

import click

from ottla.cli import options
from ottla.cli.user.secret import read_password
from ottla.cli.user.users import ListedUsers, with_users


@click.command()
@click.argument("name")
@options.store
@options.bootstrap
def password(name: str, store: str | None, bootstrap: str) -> None:
    """Set a user's password; connections that are logged in stay.

    \b
    ottla user password alice
    """  # noqa: D301
    new = read_password(name)

    async def change(users: ListedUsers) -> bool:
        if not await users.find([name]):
            return False
        await users.set_password(name, new)
        return True

    if not with_users(bootstrap, store, change):
        way = f"`ottla user add {name}` makes it"
        if name.startswith("User:"):
            way = "give the name without User:"
        raise click.ClickException(f"there is no user {name}; {way}")
    click.echo(f"set the password of {name}")
