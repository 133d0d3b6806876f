"""`ottla user password`: sets a user's password."""

import click

from ottla.cli.common import options
from ottla.cli.common.connect import with_admin
from ottla.cli.user.secret import read_password
from ottla.cli.user.users import ListedUsers, with_users
from ottla.client.admin import Admin


@click.command()
@click.argument("name")
@click.option(
    "--end-sessions", is_flag=True, help="Close the connections that are logged in as the user."
)
@options.store
@options.bootstrap
def password(name: str, end_sessions: bool, store: str | None, bootstrap: str) -> None:
    """Set a user's password; connections that are logged in stay.

    \b
    ottla user password alice
    ottla user password alice --end-sessions

    --end-sessions removes the user on every broker first, which closes its connections, and makes
    it again: where that is interrupted, run it again, or `ottla user add`.
    """  # noqa: D301
    if end_sessions and store is not None:
        raise click.UsageError("--end-sessions asks the brokers: leave --store out")
    new = read_password(name)

    async def end(admin: Admin) -> bool:
        if not await admin.users.find([name]):
            return False
        await admin.users.end_sessions(name)
        await admin.users.set_password(name, new)
        return True

    async def change(users: ListedUsers) -> bool:
        if not await users.find([name]):
            return False
        await users.set_password(name, new)
        return True

    is_known = with_admin(bootstrap, end) if end_sessions else with_users(bootstrap, store, change)
    if not is_known:
        way = f"`ottla user add {name}` makes it"
        if name.startswith("User:"):
            way = "give the name without User:"
        raise click.ClickException(f"there is no user {name}; {way}")
    click.echo(f"set the password of {name}")
