"""`ottla console`: pages about a cluster, for a browser."""

import os
from pathlib import Path

import click

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.secret_options import CONFIG_VARIABLE
from ottla.cli.common import options


@click.command()
@options.bootstrap
@click.option(
    "--listen",
    default="127.0.0.1:8090",
    show_default=True,
    metavar="HOST:PORT",
    help="Where browsers find the console.",
)
@click.option(
    "--mask",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Rules that hide parts of records, in TOML.",
)
@click.option(
    "--certificate", type=click.Path(exists=True, dir_okay=False), help="For HTTPS, in PEM."
)
@click.option("--key", type=click.Path(exists=True, dir_okay=False), help="Of that certificate.")
def console(
    bootstrap: str, listen: str, mask: Path | None, certificate: str | None, key: str | None
) -> None:
    """Serve pages about a cluster, Ottla or Apache Kafka, for a browser; ctrl-C ends.

    \b
    ottla console
    ottla console --bootstrap kafka:9092 --mask masks.toml
    ottla console --bootstrap kafka:9093 --config client.properties \\
        --listen 0.0.0.0:8090 --certificate console.pem --key console.key

    If --config has security.protocol=SASL_SSL or SASL_PLAINTEXT, visitors log in with their names
    and passwords of the cluster, and the brokers decide what they may do. Otherwise all visitors
    have the rights of this command.
    """  # noqa: D301
    try:
        from ottla.console.app import ConsoleOptions  # noqa: PLC0415  # An extra.
        from ottla.console.login import login_settings  # noqa: PLC0415
        from ottla.console.mask import Masks, parse_masks  # noqa: PLC0415
        from ottla.console.server import hosts_for, is_local, parse_listen, serve  # noqa: PLC0415
    except ImportError as error:
        raise OttlaError(
            ErrorCode.INVALID_CONFIG,
            f"the console needs a library that is missing, {error.name}: "
            "pip install 'ottla[console]'",
        ) from None
    if (certificate is None) != (key is None):
        raise click.UsageError("--certificate and --key go together")
    host, port = parse_listen(listen)
    login = login_settings(os.environ.get(CONFIG_VARIABLE))
    masks = parse_masks(mask.read_text(encoding="utf-8")) if mask is not None else Masks()
    chosen = ConsoleOptions(bootstrap, login, masks, hosts_for(host, has_login=login is not None))
    if not is_local(host):
        _warn(has_login=login is not None, has_tls=certificate is not None)
    files = (certificate, key) if certificate is not None and key is not None else None
    serve(chosen, host, port, files, lambda place: click.echo(f"The console is at {place}"))


def _warn(*, has_login: bool, has_tls: bool) -> None:
    """Say what other machines can do, or see, by these options."""
    if not has_login:
        click.echo(
            "Note: visitors from other machines do not log in, and have all rights of this "
            "command; --config with security.protocol=SASL_SSL makes them log in",
            err=True,
        )
    elif not has_tls:
        click.echo(
            "Note: passwords come to the console unencrypted; give --certificate and --key, or "
            "let a proxy on this machine receive HTTPS",
            err=True,
        )
