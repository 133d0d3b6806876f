"""Errors of the command: a sentence for people, or with `-o json` an object for programs.

Either goes to standard error, so that standard output holds answers only; the exit code is the
same for both. The object is `{"error": {"code": …, "message": …, "remedy": …}}`: Kafka's name of
the error (`USAGE` where the words of the command are wrong), what happened, and what helps, which
is null where nothing is known.
"""

from collections.abc import Sequence

import click

from ottla.base.errors import ErrorCode, OttlaError

USAGE = "USAGE"


def wants_json(words: Sequence[str]) -> bool:
    """Whether the arguments ask for JSON, even if others of them are wrong."""
    for place, word in enumerate(words):
        if word == "--":
            return False
        if word in ("-ojson", "--output=json", "--json"):
            return True
        if word in ("-o", "--output") and list(words[place + 1 : place + 2]) == ["json"]:
            return True
    return False


def show_error(error: OttlaError, words: Sequence[str]) -> None:
    """Print the error of a command that was run."""
    if not wants_json(words):
        click.echo(f"ottla: {error.message}{_here(error)} ({error.code.name})", err=True)
        return
    # Split by the form of our sentences: what happened; what to do.
    message, _, remedy = f"{error.message}{_here(error)}".partition("; ")
    _show_object(error.code.name, message, remedy)


def show_misuse(error: click.ClickException, words: Sequence[str]) -> None:
    """Print the error of wrong arguments."""
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
    """The remedy if no broker answers on this machine."""
    what = error.message
    is_here = "localhost" in what and "is a broker running there?" in what
    is_here = is_here and error.code is ErrorCode.NETWORK_EXCEPTION
    return "; `ottla start` starts one" if is_here else ""
