"""`ottla acl`: which principal may do what. A file per verb."""

import click

from ottla.cli.acl.add import add
from ottla.cli.acl.explain import explain
from ottla.cli.acl.list import list_
from ottla.cli.acl.remove import remove


@click.group()
def acl() -> None:
    """List, add, remove and explain ACLs: which principal may do what.

    \b
    ottla acl add User:alice read topic:flights
    ottla acl add User:alice write topic:fl --prefixed
    ottla acl explain User:alice write topic:flights
    ottla acl list

    A DENY wins over every ALLOW; without an ALLOW a request is denied. Brokers check requests if
    authorizer.class.name is set.
    """  # noqa: D301


for verb in (add, explain, list_, remove):
    acl.add_command(verb)
