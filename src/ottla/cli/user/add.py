"""`ottla user add`: makes a user."""

import click

from ottla.cli.common import options
from ottla.cli.user.secret import read_password
from ottla.cli.user.users import ListedUsers, with_users


@click.command()
@click.argument("name")
@options.store
@options.bootstrap
def add(name: str, store: str | None, bootstrap: str) -> None:
    """Make a user, who can log in by SCRAM at once.

    \b
    ottla user add alice
    ottla user add alice < password.txt

    What the user may do is said by ACLs: see `ottla acl add`. Before the first start of a cluster
    whose brokers log in to each other, `--store` makes their user and the first administrator:

    \b
    ottla user add broker --store server.properties
    """  # noqa: D301
    _require_name(name)
    password = read_password(name)

    async def make(users: ListedUsers) -> bool:
        if await users.find([name]):
            return False
        await users.set_password(name, password)
        return True

    if not with_users(bootstrap, store, make):
        raise click.ClickException(
            f"there is a user {name} already; `ottla user password {name}` changes its password"
        )
    click.echo(f"made user {name}")


def _require_name(name: str) -> None:
    """Refuse a name that no ACL principal can have. Raises UsageError."""
    if name.startswith("User:"):
        raise click.UsageError(
            f"{name} would be the principal User:{name}: give the name without User:"
        )
    if not name.strip() or name != name.strip() or not name.isprintable():
        raise click.UsageError("a user's name has no line ends and no blanks at its ends")
    if name in ("ANONYMOUS", "<default>"):
        raise click.UsageError(
            f"{name} is no user's name: it stands for clients that do not log in"
            if name == "ANONYMOUS"
            else f"{name} is no user's name: it stands for all users in quotas"
        )
