"""Options of sizes in bytes: `--target-size 128MB`."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

from ottla.cli.text.amount import amount

Command = TypeVar("Command", bound=Callable[..., Any])


def size_option(name: str, default: str, text: str) -> Callable[[Command], Command]:
    """An option with a size of at least one byte, such as 500k, 128MB or 2Gi."""
    return click.option(
        name,
        default=default,
        show_default=True,
        metavar="SIZE",
        callback=lambda _context, _option, given: _bytes(given),
        help=text,
    )


def _bytes(text: str) -> int:
    found = amount(text)
    if not 1 <= found < 1 << 62:
        raise click.BadParameter(f"{text!r} is no size; write one such as 500k, 128MB or 2Gi")
    return int(found)
