"""`ottla certs`: certificates for trying TLS. A file per verb."""

import click

from ottla.cli.certs.dev import dev


@click.group()
def certs() -> None:
    """Make certificates for a laptop.

    \b
    ottla certs dev
    """  # noqa: D301


certs.add_command(dev)
