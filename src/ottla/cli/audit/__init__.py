"""`ottla audit`: what brokers denied and administrators changed. A file per verb."""

import click

from ottla.cli.audit.show import show_lines
from ottla.cli.audit.verify import verify


@click.group()
def audit() -> None:
    """Read and verify audit logs: denials, logins, changes.

    \b
    ottla audit show ottla-data --principal User:alice
    ottla audit verify ottla-data
    ottla audit verify ottla-data --head 9f3a...

    Needs no broker, and only reads. A broker with an authorizer or a SASL listener writes one.
    """  # noqa: D301


for verb in (show_lines, verify):
    audit.add_command(verb)
