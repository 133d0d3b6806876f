"""The option `--store-option`, for commands that open a table."""

import os
from collections.abc import Callable
from typing import Any, TypeVar

import click

from ottla.base.secret_options import resolved

Command = TypeVar("Command", bound=Callable[..., Any])


def store_options(command: Command) -> Command:
    """Add `--store-option NAME=VALUE`, which may be given any number of times."""
    return click.option(
        "--store-option",
        "store_options",
        multiple=True,
        metavar="NAME=VALUE",
        callback=lambda _context, _option, texts: _options(texts),
        help="An option of the table's storage (docs/how-to/store-tables.md); ${NAME} is a"
        " variable. Repeatable.",
    )(command)


def _options(texts: tuple[str, ...]) -> dict[str, str]:
    """Return options by name, from `NAME=VALUE`. Raises click.BadParameter for other forms."""
    options = {}
    for text in texts:
        name, separator, value = text.partition("=")
        if not separator or not name:
            raise click.BadParameter(f"{text!r} is not NAME=VALUE")
        options[name] = value
    return resolved(options, "a command", os.environ)
