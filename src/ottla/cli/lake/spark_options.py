"""`--here`, `--master`, `--conf` and `--name`, for commands that run on Spark."""

import os
from collections.abc import Callable
from functools import wraps
from typing import Any

import click

from ottla.base.secret_options import resolved

# `ottla.lake.session.HERE`, which Arrow would have to be imported for.
_HERE = "here"


def spark_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The parameters `master`, `conf` and `name`; `--here` is the master `here`."""
    here = click.option(
        "--here",
        is_flag=True,
        help="Run in this process, without Spark and Java: for what one process can do.",
    )
    master = click.option(
        "--master",
        default=None,
        metavar="URL",
        help="Spark's master, or sc://HOST:PORT. Default: as Spark is configured, else Spark on "
        "this machine.",
    )
    conf = click.option(
        "--conf",
        multiple=True,
        metavar="NAME=VALUE",
        callback=lambda _context, _option, texts: _settings(texts),
        help="A setting of Spark; repeatable.",
    )
    name = click.option("--name", default=None, help="The application's name in Spark.")

    @wraps(command)
    def with_master(*given: Any, here: bool, master: str | None, **more: Any) -> Any:
        if here and master not in (None, _HERE):
            raise click.UsageError(f"--here is without Spark: leave --master {master} out, or it")
        return command(*given, master=_HERE if here else master, **more)

    return here(master(conf(name(with_master))))


def _settings(texts: tuple[str, ...]) -> dict[str, str]:
    """Settings by name, from `NAME=VALUE`. Raises click.BadParameter for other words."""
    settings = {}
    for text in texts:
        name, separator, value = text.partition("=")
        if not separator or not name.startswith("spark."):
            raise click.BadParameter(f"{text!r} is not spark.NAME=VALUE")
        settings[name] = value
    return resolved(settings, "a command", os.environ)
