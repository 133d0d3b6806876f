"""Prints a command's errors: a sentence for people, or with `-o json` an object for programs.

Both go to standard error, so that standard output has only answers, and have the same exit code.
The object is `{"error": {"code": …, "message": …, "remedy": …}}`. The code is Kafka's name of the
error, or `USAGE` for wrong arguments. The message says what happened, and the remedy what helps;
it is null if no remedy is known.
"""

from collections.abc import Sequence

import click

from ottla.base.errors import ErrorCode, OttlaError

USAGE = "USAGE"


def wants_json(words: Sequence[str]) -> bool:
    """Whether the arguments ask for JSON, even if other arguments are wrong."""
    for place, word in enumerate(words):
        if word == "--":
            return False
        if word in ("-ojson", "--output=json", "--json"):
            return True
        if word in ("-o", "--output") and list(words[place + 1 : place + 2]) == ["json"]:
            return True
    return False


def show_error(error: OttlaError, words: Sequence[str]) -> None:
    """Print an error that a command raised."""
    if not wants_json(words):
        click.echo(f"ottla: {error.message}{_here(error)} ({error.code.name})", err=True)
        return
    # Ottla's messages have this form: what happened; what to do.
    message, _, remedy = f"{error.message}{_here(error)}".partition("; ")
    _show_object(error.code.name, message, remedy)


def show_misuse(error: click.ClickException, words: Sequence[str]) -> None:
    """Print an error about wrong arguments."""
    if not wants_json(words):
        error.show()
        return
    context = error.ctx if isinstance(error, click.UsageError) else None
    remedy = f"see `{context.command_path} --help`" if context is not None else ""
    _show_object(USAGE, error.format_message(), remedy)


def _show_object(code: str, message: str, remedy: str) -> None:
    # Imported only after a mistake.
    import json  # noqa: PLC0415

    answer = {"error": {"code": code, "message": message, "remedy": remedy or None}}
    click.echo(json.dumps(answer), err=True)


def _here(error: OttlaError) -> str:
    """Return the remedy if no broker answers on this machine."""
    what = error.message
    is_here = "localhost" in what and "is a broker running there?" in what
    is_here = is_here and error.code is ErrorCode.NETWORK_EXCEPTION
    return "; `ottla start` starts one" if is_here else ""
