"""`ottla user list`: the users there are."""

import click

from ottla.cli.common import options
from ottla.cli.text.output import show
from ottla.cli.user.users import with_users

_COLUMNS = ("user", "mechanism", "iterations")


@click.command(name="list")
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
