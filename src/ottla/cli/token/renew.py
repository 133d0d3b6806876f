"""`ottla token renew`: extends a delegation token's validity."""

import click

from ottla.base.quantities import iso
from ottla.cli.common import options
from ottla.cli.common.connect import with_admin
from ottla.cli.text.words import span
from ottla.client.admin import Admin


@click.command()
@click.argument("identity", metavar="ID")
@click.option("--for", "period_ms", type=span, default=-1, help="How long from now on: 12h, 1d.")
@options.bootstrap
def renew(identity: str, period_ms: int, bootstrap: str) -> None:
    """Let a token be good for longer, within its lifetime.

    \b
    ottla token renew Yo2Q3Q_hT7S9ypfIZ2CyVA
    ottla token renew Yo2Q3Q_hT7S9ypfIZ2CyVA --for 12h

    Its owner may, and its renewers. A token that has expired cannot be renewed.
    """  # noqa: D301

    async def work(admin: Admin) -> int:
        found = await admin.tokens.find_one(identity)
        return await admin.tokens.renew(found.hmac, period_ms)

    click.echo(f"token {identity} is good until {iso(with_admin(bootstrap, work))}")
