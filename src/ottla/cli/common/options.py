"""The options that several commands share."""

import os
import shlex
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

import click

from ottla.base.errors import OttlaError
from ottla.base.secret_options import CONFIG_VARIABLE, one_line, require_path
from ottla.base.settings import is_secret
from ottla.base.settings.written_values import plain_value

Command = TypeVar("Command", bound=Callable[..., Any])

_BOOTSTRAP = "localhost:9092"
# The ends of names of secrets that are one line. Other secrets may have several lines.
_OF_ONE_LINE = ("password", ".secret.key", ".master.key")
_BOOTSTRAP_VARIABLE = "OTTLA_BOOTSTRAP"


def bootstrap(command: Command) -> Command:
    """Add `--bootstrap` (the cluster) and `--config` (the settings to log in to it)."""
    command = click.option(
        "--bootstrap",
        "-b",
        default=_BOOTSTRAP,
        envvar=_BOOTSTRAP_VARIABLE,
        show_default=True,
        metavar="HOST:PORT",
        help="The cluster, Ottla or Apache Kafka.",
    )(command)
    return click.option(
        "--config",
        type=_SettingsFile(exists=True, dir_okay=False),
        callback=_use_config,
        expose_value=False,
        envvar=CONFIG_VARIABLE,
        metavar="FILE",
        help="Settings of Kafka's clients: security.protocol, ssl…, sasl….",
    )(command)


class _SettingsFile(click.Path):
    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> str | bytes | os.PathLike[str]:
        if not os.path.exists(value):
            try:
                require_path(value, "this")
            except OttlaError as error:
                self.fail(error.message, param, ctx)
        return super().convert(value, param, ctx)


def _use_config(_context: click.Context, _option: click.Parameter, path: str | None) -> None:
    if path is not None:
        use_config(path)


def use_config(path: str) -> None:
    """Make every client of this process, and of its child processes, read the file."""
    os.environ[CONFIG_VARIABLE] = os.path.abspath(path)


def store(command: Command) -> Command:
    """Add `--store`: work on the store itself, without a broker (see `cli.stored_security`)."""
    return click.option(
        "--store",
        metavar="PLACE",
        help="Use the store instead of a broker: its address, a broker's settings file, or the "
        "folder of `ottla start`.",
    )(command)


def bootstrap_words(bootstrap: str) -> str:
    """Return the options with which a printed command reaches the same cluster."""
    if bootstrap == os.environ.get(_BOOTSTRAP_VARIABLE, _BOOTSTRAP):
        return ""
    return f" --bootstrap {shlex.quote(bootstrap)}"


def output(command: Command) -> Command:
    """Add `-o`: a table for people, or JSON for programs."""
    return click.option(
        "--output",
        "-o",
        "form",
        type=click.Choice(["table", "json"]),
        default="table",
        show_default=True,
        help="How to show the answer.",
    )(command)


def settings(example: str) -> Callable[[Command], Command]:
    """Add `--set NAME=VALUE`, which may be repeated; its help shows `example`."""
    return click.option(
        "--set",
        "-s",
        "assignments",
        multiple=True,
        metavar="NAME=VALUE",
        help=f"A setting, by Kafka's name, such as {example}; a secret as NAME=@FILE. May be "
        "given again.",
    )


def parse_settings(assignments: Iterable[str]) -> dict[str, str]:
    """Parse the values of `--set`; spans and sizes with units become plain numbers.

    A secret is read from a file, because other users of the machine can see a command's arguments.
    """
    parsed: dict[str, str] = {}
    for assignment in assignments:
        name, sign, value = assignment.partition("=")
        if not sign or not name:
            raise click.BadParameter(f"{assignment!r} is not NAME=VALUE", param_hint="--set")
        name = name.strip()
        parsed[name] = _secret(name, value) if is_secret(name) else plain_value(name, value)
    return parsed


def _secret(name: str, value: str) -> str:
    """Return the content of FILE for `@FILE`. Error messages do not repeat other values."""
    if not value.startswith("@"):
        raise click.BadParameter(
            f"{name} is a secret, and other users of this machine can see the words of a command: "
            f"write it to a file that only you can read, and give {name}=@FILE",
            param_hint="--set",
        )
    try:
        text = Path(value[1:]).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is not UTF-8"
        raise click.BadParameter(
            f"{name}: cannot read {value[1:]}: {why}", param_hint="--set"
        ) from None
    if not name.endswith(_OF_ONE_LINE):
        return text.rstrip("\r\n")
    try:
        return one_line(text, f"{name} in {value[1:]}")
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--set") from None


def unset(command: Command) -> Command:
    """Add `--unset NAME`, which may be repeated."""
    return click.option(
        "--unset",
        "-u",
        "unset",
        multiple=True,
        metavar="NAME",
        help="Return a setting to its default. May be given again.",
    )(command)


def parse_changes(assignments: Iterable[str], unset: Iterable[str]) -> dict[str, str | None]:
    """Return the changes of `--set` and `--unset`; None resets a setting to its default."""
    changes: dict[str, str | None] = dict(parse_settings(assignments))
    for name in unset:
        if name in changes:
            raise click.BadParameter(f"{name} is both set and unset", param_hint="--unset")
        changes[name] = None
    return changes


def at_once(command: Command) -> Command:
    """Add `--at-once`: how many partitions of a plan move at the same time."""
    return click.option(
        "--at-once",
        type=click.IntRange(1),
        default=10,
        show_default=True,
        help="How many partitions move at a time.",
    )(command)


def yes(command: Command) -> Command:
    """Add `--yes`: do not ask for confirmation."""
    return click.option("--yes", "-y", is_flag=True, help="Do it without asking.")(command)


def confirm(question: str) -> None:
    """Ask on the terminal, and exit with 1 if the answer is no.

    Raises UsageError if there is no terminal.
    """
    if not sys.stdin.isatty():
        raise click.UsageError("there is no terminal to confirm this on; add --yes")
    if not click.confirm(question, err=True):
        click.echo("nothing was done", err=True)
        raise click.exceptions.Exit(1)
