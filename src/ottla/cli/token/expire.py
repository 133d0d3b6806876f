"""`ottla token expire`: ends a delegation token."""

import click

from ottla.base.quantities import iso
from ottla.cli.common import options
from ottla.cli.common.connect import with_admin
from ottla.cli.text.words import span
from ottla.client.admin import Admin


@click.command()
@click.argument("identity", metavar="ID")
@click.option("--in", "period_ms", type=span, default=-1, help="After this time: 10m, 2h.")
@options.bootstrap
def expire(identity: str, period_ms: int, bootstrap: str) -> None:
    """End a token, at once unless --in says otherwise.

    \b
    ottla token expire Yo2Q3Q_hT7S9ypfIZ2CyVA
    ottla token expire Yo2Q3Q_hT7S9ypfIZ2CyVA --in 10m

    Its owner may, and its renewers. No client can log in with it then; connections that are logged
    in stay until the time at which it would have ended.
    """  # noqa: D301

    async def work(admin: Admin) -> int:
        found = await admin.tokens.find_one(identity)
        return await admin.tokens.expire(found.hmac, period_ms)

    end_ms = with_admin(bootstrap, work)
    what = "has ended" if period_ms < 0 else f"ends at {iso(end_ms)}"
    click.echo(f"token {identity} {what}")
