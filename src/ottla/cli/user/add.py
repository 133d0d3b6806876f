"""`ottla user add`: makes a user."""

import click

from ottla.cli import options
from ottla.cli.connect import with_admin
from ottla.cli.user.secret import read_password
from ottla.client.admin import Admin


@click.command()
@click.argument("name")
@options.bootstrap
def add(name: str, bootstrap: str) -> None:
    """Make a user, who can log in by SCRAM at once.

    \b
    ottla user add alice
    ottla user add alice < password.txt

    What the user may do is said by ACLs: see `ottla acl add`.
    """  # noqa: D301
    password = read_password(name)

    async def make(admin: Admin) -> bool:
        if await admin.users.find([name]):
            return False
        await admin.users.set_password(name, password)
        return True

    if not with_admin(bootstrap, make):
        raise click.ClickException(
            f"there is a user {name} already; `ottla user password {name}` changes its password"
        )
    click.echo(f"made user {name}")
