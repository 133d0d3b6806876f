"""`--master`, `--conf` and `--name`, for commands that run on Spark."""

import os
from collections.abc import Callable
from typing import Any, TypeVar

import click

from ottla.base.secret_options import resolved

Command = TypeVar("Command", bound=Callable[..., Any])


def spark_options(command: Command) -> Command:
    """The parameters `master`, `conf` and `name`."""
    master = click.option(
        "--master",
        default=None,
        metavar="URL",
        help="Spark's master, or sc://HOST:PORT. Default: as Spark is configured, else this "
        "machine.",
    )
    conf = click.option(
        "--conf",
        multiple=True,
        metavar="NAME=VALUE",
        callback=lambda _context, _option, texts: _settings(texts),
        help="A setting of Spark; repeatable.",
    )
    name = click.option("--name", default=None, help="The application's name in Spark.")
    return master(conf(name(command)))


def _settings(texts: tuple[str, ...]) -> dict[str, str]:
    """Settings by name, from `NAME=VALUE`. Raises click.BadParameter for other words."""
    settings = {}
    for text in texts:
        name, separator, value = text.partition("=")
        if not separator or not name.startswith("spark."):
            raise click.BadParameter(f"{text!r} is not spark.NAME=VALUE")
        settings[name] = value
    return resolved(settings, "a command", os.environ)
