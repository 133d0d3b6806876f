"""`ottla token`: delegation tokens."""

import os
from pathlib import Path

import click

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.private_files import write_private
from ottla.base.quantities import iso
from ottla.base.secret_options import CONFIG_VARIABLE
from ottla.cli.common import options
from ottla.cli.common.connect import connected
from ottla.cli.text.output import show, show_one
from ottla.cli.text.words import principal, span
from ottla.client.admin import Admin
from ottla.client.connection.security import read_config
from ottla.operations.secure.login import settings_with_token
from ottla.security.principal import Principal
from ottla.security.tokens import DelegationToken


@click.group()
def token() -> None:
    """Make, list, renew and end delegation tokens.

    \b
    ottla token create --to job.properties --config me.properties
    ottla topic list --config job.properties
    ottla token list --config me.properties

    A client that has a token acts as the token's owner until it expires. Give it to a job in place
    of a password. Brokers need delegation.token.secret.key, and a listener with SCRAM.
    """  # noqa: D301


@token.command()
@click.option(
    "--owner",
    type=principal,
    metavar="PRINCIPAL",
    help="Whose token; another user's needs create-tokens on that user.",
)
@click.option(
    "--renewer",
    "renewers",
    multiple=True,
    type=principal,
    metavar="PRINCIPAL",
    help="Who may renew and end it, besides its owner. May be given again.",
)
@click.option(
    "--for", "lifetime_ms", type=span, default=-1, help="How long it can be renewed: 12h, 7d."
)
@click.option(
    "--to",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write the client settings that log in with it here, and show no secret.",
)
@connected
@options.output
async def create(
    admin: Admin,
    owner: Principal | None,
    renewers: tuple[Principal, ...],
    lifetime_ms: int,
    to: Path | None,
    form: str,
) -> None:
    """Make a token for yourself, or for another user.

    \b
    ottla token create --to job.properties --config me.properties
    ottla token create --owner User:bob --renewer User:alice --for 12h

    A client logs in with it by SCRAM, as the user ID with the password HMAC and the option
    tokenauth="true". The cluster's delegation.token.expiry.time.ms says when it must be renewed,
    delegation.token.max.lifetime.ms for how long that is possible.
    """  # noqa: D301
    path = os.environ.get(CONFIG_VARIABLE)
    config = read_config(path) if path else {}
    if to is not None and not os.access(to.parent, os.W_OK):
        raise OttlaError(
            ErrorCode.INVALID_CONFIG,
            f"{to} cannot be written, and no token was made: name another file with --to",
        )
    found = await admin.tokens.create(owner, renewers, lifetime_ms)
    if to is not None:
        write_private(to, settings_with_token(config, found.token.id, found.password).encode())
    secret = {"hmac": found.password} if to is None else {"settings": str(to)}
    show_one(form, {**_row(found.token), **secret})


@token.command()
@click.argument("identity", metavar="ID")
@click.option("--in", "period_ms", type=span, default=-1, help="After this time: 10m, 2h.")
@connected
async def expire(admin: Admin, identity: str, period_ms: int) -> None:
    """End a token, at once unless --in says otherwise.

    \b
    ottla token expire Yo2Q3Q_hT7S9ypfIZ2CyVA
    ottla token expire Yo2Q3Q_hT7S9ypfIZ2CyVA --in 10m

    Only its owner and its renewers may do this. Afterwards no client can log in with it; existing
    connections stay until the time at which it would have expired.
    """  # noqa: D301
    found = await admin.tokens.find_one(identity)
    end_ms = await admin.tokens.expire(found.hmac, period_ms)
    what = "has ended" if period_ms < 0 else f"ends at {iso(end_ms)}"
    click.echo(f"token {identity} {what}")


@token.command(name="list")
@click.option(
    "--owner",
    "owners",
    multiple=True,
    type=principal,
    metavar="PRINCIPAL",
    help="Only those of this user, or that it may renew. May be given again.",
)
@connected
@options.output
async def list_(admin: Admin, owners: tuple[Principal, ...], form: str) -> None:
    """List the tokens that you may see, without their secrets.

    \b
    ottla token list
    ottla token list --owner User:bob
    """  # noqa: D301
    found = await admin.tokens.find(owners or None)
    rows = [_row(one.token) for one in sorted(found, key=lambda each: each.token.issued_ms)]
    show(form, rows, _COLUMNS, empty="there are no tokens that you may see")


@token.command()
@click.argument("identity", metavar="ID")
@click.option("--for", "period_ms", type=span, default=-1, help="How long from now on: 12h, 1d.")
@connected
async def renew(admin: Admin, identity: str, period_ms: int) -> None:
    """Renew a token, within its maximum lifetime.

    \b
    ottla token renew Yo2Q3Q_hT7S9ypfIZ2CyVA
    ottla token renew Yo2Q3Q_hT7S9ypfIZ2CyVA --for 12h

    Only its owner and its renewers may do this. A token that has expired cannot be renewed.
    """  # noqa: D301
    found = await admin.tokens.find_one(identity)
    click.echo(
        f"token {identity} is good until {iso(await admin.tokens.renew(found.hmac, period_ms))}"
    )


_COLUMNS = ("id", "owner", "requester", "renewers", "expires", "renewable_until")


def _row(token: DelegationToken) -> dict[str, object]:
    """Return one token as a row of a table."""
    return {
        "id": token.id,
        "owner": str(token.owner),
        "requester": str(token.requester),
        "renewers": [str(one) for one in token.renewers],
        "issued": iso(token.issued_ms),
        "expires": iso(token.expires_ms),
        "renewable_until": iso(token.max_ms),
    }
