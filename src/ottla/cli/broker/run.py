"""`ottla broker run`: a broker with the settings in a file, as Kafka's own scripts run one."""

import logging
from pathlib import Path

import click

from ottla.base.log_lines import log_to_stderr
from ottla.base.private_files import exposed_file
from ottla.base.settings import BrokerSettings, is_secret, read_broker_settings
from ottla.cli.start.start import LOG_LAYOUT

_log = logging.getLogger(__name__)


@click.command()
@click.argument("properties", type=click.Path(path_type=Path, dir_okay=False))
def run(properties: Path) -> None:
    """Run a broker with the settings in a file. SIGTERM stops it in order.

    \b
    ottla broker run server.properties
    """  # noqa: D301
    settings = read_broker_settings(properties)
    log_to_stderr(logging.INFO, LOG_LAYOUT)
    _warn_of_open_secrets(properties, settings)
    from ottla.broker.process.main import run as serve  # noqa: PLC0415  # A wrong setting is refused first.

    serve(settings, on_ready=lambda ready: _log.info("serves on port %d", ready.port))


def _warn_of_open_secrets(properties: Path, settings: BrokerSettings) -> None:
    secrets = [name for name in settings.static if is_secret(name)]
    mode = exposed_file(str(properties)) if secrets else None
    if mode is not None:
        _log.warning(
            "other users of this machine may read %s, which is in %s (mode %04o): run `chmod 600`"
            " on it, and replace the secret if they may have read it",
            secrets[0],
            properties,
            mode,
        )
