"""`ottla user`: manages the users that can log in."""

import os
import sys
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol, TypeVar

import click

from ottla.base.secret_options import one_line
from ottla.cli.common import options
from ottla.cli.common.connect import with_admin
from ottla.cli.text.output import show
from ottla.client.admin import Admin
from ottla.client.admin.credentials import UserDescription

Result = TypeVar("Result")


class ListedUsers(Protocol):
    """The user methods that the commands use, of a broker's users or of the store's."""

    async def find(self, names: Sequence[str] | None = None) -> list[UserDescription]: ...

    async def set_password(self, name: str, password: str) -> None: ...

    async def remove(self, name: str) -> None: ...


def with_users(
    bootstrap: str, store: str | None, work: Callable[[ListedUsers], Awaitable[Result]]
) -> Result:
    """Run `work` with the users of a cluster or, with `--store`, of a store; return its result."""
    if store is None:
        return with_admin(bootstrap, lambda admin: work(admin.users))
    # Slow to import, and rarely used.
    from ottla.cli.stored_security import StoredUsers, with_store  # noqa: PLC0415

    return with_store(store, lambda stored: work(StoredUsers(stored)))


@click.group()
def user() -> None:
    """List, add and remove users, and set their passwords.

    \b
    ottla user add alice
    ottla user password alice
    ottla user list

    Users log in by SCRAM on listeners with SASL. A password is asked for, or read from standard
    input or the environment variable OTTLA_PASSWORD; it is no argument, as others could see it.
    """  # noqa: D301


@user.command()
@click.argument("name")
@options.store
@options.bootstrap
def add(name: str, store: str | None, bootstrap: str) -> None:
    """Make a user that can log in by SCRAM at once.

    \b
    ottla user add alice
    ottla user add alice < password.txt

    ACLs say what the user may do: see `ottla acl add`. Before the first start of a cluster whose
    brokers log in to each other, `--store` creates their user and the first administrator:

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


_COLUMNS = ("user", "mechanism", "iterations")


@user.command(name="list")
@options.store
@options.bootstrap
@options.output
def list_(store: str | None, bootstrap: str, form: str) -> None:
    """List users, and by which mechanisms they can log in.

    \b
    ottla user list
    """  # noqa: D301
    found = with_users(bootstrap, store, lambda users: users.find())
    rows = [
        {"user": one.name, "mechanism": mechanism.sasl_name, "iterations": iterations}
        for one in sorted(found, key=lambda each: each.name)
        for mechanism, iterations in one.credentials.items()
    ]
    show(form, rows, _COLUMNS, empty="there are no users; `ottla user add` makes one")


@user.command()
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

    --end-sessions first removes the user on every broker, which closes its connections, and then
    adds it again. If that is interrupted, run it again, or `ottla user add`.
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


@user.command()
@click.argument("name")
@options.store
@options.bootstrap
def remove(name: str, store: str | None, bootstrap: str) -> None:
    """Remove a user, so that it cannot log in any more.

    \b
    ottla user remove alice

    Its connections are closed. ACLs that name the user stay.
    """  # noqa: D301
    with_users(bootstrap, store, lambda users: users.remove(name))
    click.echo(f"removed user {name}")


_VARIABLE = "OTTLA_PASSWORD"
_BYTES_MAX = 64 << 10


def read_password(user: str) -> str:
    """Read the new password of a user. Raises UsageError if there is none."""
    try:
        password = _read(user)
        # Bytes that are not UTF-8 may have been read as lone surrogates, which raise an error here.
        password.encode()
    except UnicodeError:
        # The original error is not shown, because its text contains the password.
        raise click.UsageError(
            "the password is not UTF-8, as which clients send it: save its file as UTF-8"
        ) from None
    try:
        password = one_line(password, "the password")
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    if not password:
        raise click.UsageError(
            f"the password is empty: type it, pipe it to standard input, or set {_VARIABLE}"
        )
    return password


def _read(user: str) -> str:
    password = os.environ.get(_VARIABLE)
    if password is not None:
        return password
    if sys.stdin.isatty():
        asked = click.prompt(
            f"Password of {user}", hide_input=True, confirmation_prompt=True, err=True
        )
        return str(asked)
    # Editors and shells on Windows begin a text with a byte order mark.
    return sys.stdin.read(_BYTES_MAX).removeprefix("\ufeff")
