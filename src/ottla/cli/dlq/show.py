"""`ottla dlq show`: dead letters in full, with their records."""

from typing import Any

import click

from ottla.base.errors import ErrorCode, OttlaError
from ottla.cli.common import options
from ottla.cli.common.completion import topics
from ottla.cli.dlq.letters import choosing, chosen_by, read_letters
from ottla.cli.text.output import show_one
from ottla.operations.dead_letters import FoundLetter


@click.command("show")
@click.argument("source", metavar="TOPIC|TABLE", shell_complete=topics)
@choosing
@options.bootstrap
@options.output
def show(source: str, bootstrap: str, form: str, **given: Any) -> None:
    """Show dead letters: cause, key, value and headers.

    \b
    ottla dlq show dlq.tasks --partition 4 --offset 1207
    ottla dlq show /lake/flights --matching 'no JSON' -o json
    """  # noqa: D301
    found = list(filter(chosen_by(given), read_letters(source, bootstrap)))
    if not found:
        raise OttlaError(
            ErrorCode.RESOURCE_NOT_FOUND,
            f"no such dead letter: `ottla dlq list {source}` names those that are there",
        )
    for place, one in enumerate(found):
        if place and form == "table":
            click.echo()
        show_one(form, _fields(one))


def _fields(one: FoundLetter) -> dict[str, Any]:
    letter = one.letter
    return {
        "letter": one.place,
        "state": "redriven" if one.redriven else "dead",
        "record": f"{letter.topic}-{letter.partition}@{letter.offset}",
        "refused by": letter.group,
        "stage": letter.stage,
        "error": letter.message,
        "deliveries": letter.delivery_count,
        "schema id": letter.schema_id,
        "timestamp_ms": letter.timestamp_ms,
        "written_ms": one.written_ms,
        "key": _text(one.key),
        "value": _text(one.value),
        "headers": {name: _text(value) for name, value in one.headers},
    }


def _text(content: bytes | None) -> str | None:
    """Bytes as text, or in hexadecimal if they are not text."""
    if content is None:
        return None
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return f"hex:{content.hex()}"
    return text if text.isprintable() else f"hex:{content.hex()}"
