"""`ottla user`: who can log in. A file per verb."""

import click

from ottla.cli.user.add import add
from ottla.cli.user.list import list_
from ottla.cli.user.password import password
from ottla.cli.user.remove import remove


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


for verb in (add, list_, password, remove):
    user.add_command(verb)
