"""`ottla quota`: how much clients may use. A file per verb."""

import click

from ottla.cli.quota.alter import alter
from ottla.cli.quota.describe import describe
from ottla.cli.quota.list import list_


@click.group()
def quota() -> None:
    """List, describe and alter quotas: how much clients may use.

    \b
    ottla quota alter --user alice --set producer_byte_rate=10M
    ottla quota alter --default-client-id --set consumer_byte_rate=5M
    ottla quota list

    Each broker enforces quotas on its own. If several quotas match a client, the most specific one
    applies: a user with a client id, then the user, then the client id; names before defaults.
    """  # noqa: D301


for verb in (alter, describe, list_):
    quota.add_command(verb)
