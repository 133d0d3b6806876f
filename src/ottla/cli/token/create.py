"""`ottla token create`: makes a delegation token."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.secret_options import CONFIG_VARIABLE
from ottla.cli.common import options
from ottla.cli.common.connect import with_admin
from ottla.cli.text.output import show_one
from ottla.cli.text.words import principal, span
from ottla.cli.token.rows import row
from ottla.client.connection.security import read_config
from ottla.operations.tokens import settings_with_token
from ottla.security.principal import Principal


@click.command()
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
@options.bootstrap
@options.output
def create(
    owner: Principal | None,
    renewers: tuple[Principal, ...],
    lifetime_ms: int,
    to: Path | None,
    bootstrap: str,
    form: str,
) -> None:
    """Make a token of yours, or of another user.

    \b
    ottla token create --to job.properties --config me.properties
    ottla token create --owner User:bob --renewer User:alice --for 12h

    A client logs in with it by SCRAM, as the user ID with the password HMAC and the option
    tokenauth="true". The cluster's delegation.token.expiry.time.ms says when it must be renewed,
    delegation.token.max.lifetime.ms for how long that is possible.
    """  # noqa: D301
    path = os.environ.get(CONFIG_VARIABLE)
    config = read_config(path) if path else {}
    with _written_later(to) as write:
        found = with_admin(
            bootstrap, lambda admin: admin.tokens.create(owner, renewers, lifetime_ms)
        )
        write(settings_with_token(config, found))
    secret = {"hmac": found.password} if to is None else {"settings": str(to)}
    show_one(form, {**row(found.token), **secret})


@contextmanager
def _written_later(path: Path | None) -> Iterator[Callable[[str], object]]:
    """A private file, created before the token, and written completely or not at all.

    Raises OttlaError.
    """
    if path is None:
        yield lambda _text: None
        return
    new = path.with_name(f".{path.name}.new")
    try:
        new.unlink(missing_ok=True)
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:
        raise OttlaError(
            ErrorCode.INVALID_CONFIG,
            f"{path} cannot be written ({error.strerror}), and no token was made: name another "
            "file with --to",
        ) from None
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            yield file.write
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)
