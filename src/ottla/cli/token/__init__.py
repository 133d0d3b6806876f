"""`ottla token`: delegation tokens. A file per verb."""

import click

from ottla.cli.token.create import create
from ottla.cli.token.expire import expire
from ottla.cli.token.list import list_
from ottla.cli.token.renew import renew


@click.group()
def token() -> None:
    """Make, list, renew and end delegation tokens.

    \b
    ottla token create --to job.properties --config me.properties
    ottla topic list --config job.properties
    ottla token list --config me.properties

    Who has a token is its owner to the brokers, until it ends. Give it to a job in place of a
    password. Brokers need delegation.token.secret.key, and a listener with SCRAM.
    """  # noqa: D301


for verb in (create, list_, renew, expire):
    token.add_command(verb)
