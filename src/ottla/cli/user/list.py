"""`ottla user list`: the users there are."""

import click

from ottla.cli import options
from ottla.cli.connect import with_admin
from ottla.cli.text.output import show

_COLUMNS = ("user", "mechanism", "iterations")


@click.command(name="list")
@options.bootstrap
@options.output
def list_(bootstrap: str, form: str) -> None:
    """List users, and by which mechanisms they can log in.

    \b
    ottla user list
    """  # noqa: D301
    found = with_admin(bootstrap, lambda admin: admin.users.find())
    rows = [
        {"user": one.name, "mechanism": mechanism.sasl_name, "iterations": iterations}
        for one in sorted(found, key=lambda each: each.name)
        for mechanism, iterations in one.credentials.items()
    ]
    show(form, rows, _COLUMNS, empty="there are no users; `ottla user add` makes one")
