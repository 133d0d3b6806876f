"""`ottla user password`: sets a user's password."""

import click

from ottla.cli import options
from ottla.cli.connect import with_admin
from ottla.cli.user.secret import read_password
from ottla.client.admin import Admin


@click.command()
@click.argument("name")
@options.bootstrap
def password(name: str, bootstrap: str) -> None:
    """Set a user's password; connections that are logged in stay.

    \b
    ottla user password alice
    """  # noqa: D301
    new = read_password(name)

    async def change(admin: Admin) -> bool:
        if not await admin.users.find([name]):
            return False
        await admin.users.set_password(name, new)
        return True

    if not with_admin(bootstrap, change):
        raise click.ClickException(f"there is no user {name}; `ottla user add {name}` makes it")
    click.echo(f"set the password of {name}")
