"""`ottla certs`: certificates for trying TLS."""

from datetime import UTC, datetime
from pathlib import Path

import click

from ottla.base.errors import ErrorCode, OttlaError


@click.group()
def certs() -> None:
    """Make certificates for a laptop.

    \b
    ottla certs dev
    """  # noqa: D301


@certs.command()
@click.option(
    "--dir",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("ottla-certs"),
    show_default=True,
    help="Where the files are made.",
)
@click.option(
    "--host",
    "hosts",
    multiple=True,
    metavar="NAME",
    help="A name or address of the broker, besides localhost. May be given again.",
)
@click.option("--user", default="client", show_default=True, help="The client's name (CN).")
def dev(folder: Path, hosts: tuple[str, ...], user: str) -> None:
    """Make an authority, certificates and settings for TLS.

    \b
    ottla certs dev
    ottla certs dev --dir /tmp/certs --host broker.local --user alice

    Not for production: the authority's key is in the same folder as the certificates. Run again, it
    signs new certificates with the same authority, and running brokers reload them.
    """  # noqa: D301
    try:
        from ottla.operations.certificates import (  # noqa: PLC0415  # An extra.
            make_development_files,
        )
    except ImportError:
        raise OttlaError(
            ErrorCode.INVALID_CONFIG, "certificates need a library: pip install 'ottla[security]'"
        ) from None
    try:
        made = make_development_files(folder, hosts, user, datetime.now(UTC))
    except (OSError, ValueError) as error:
        raise OttlaError(
            ErrorCode.INVALID_CONFIG, f"cannot make certificates in {folder}: {error}"
        ) from None
    kept = "" if made.authority_is_new else " (as it was)"
    click.echo(f"authority{kept}   {made.authority}")
    click.echo(f"broker      {made.server}, settings {made.server_properties}")
    click.echo(f"client      {made.client}, User:CN={user}, settings {made.client_properties}")
