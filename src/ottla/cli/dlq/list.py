"""`ottla dlq list`: the dead letters of a topic or a table, or how many there are of each kind."""

from collections import Counter
from typing import Any

import click

from ottla.cli.common import options
from ottla.cli.common.completion import topics
from ottla.cli.dlq.letters import choosing, chosen_by, read_letters
from ottla.cli.text.output import show

_COLUMNS = ["letter", "topic", "partition", "offset", "stage", "deliveries", "state", "error"]
_SUMMARY = ["topic", "stage", "error", "letters", "redriven"]


@click.command("list")
@click.argument("source", metavar="TOPIC|TABLE", shell_complete=topics)
@choosing
@click.option("--summary", is_flag=True, help="Count letters by topic, stage and error.")
@options.bootstrap
@options.output
def list_(source: str, summary: bool, bootstrap: str, form: str, **given: Any) -> None:
    """List the dead letters of a topic, or of a table of the lake.

    \b
    ottla dlq list dlq.tasks
    ottla dlq list /lake/flights --stage decode.value
    ottla dlq list dlq.tasks --summary
    """  # noqa: D301
    found = list(filter(chosen_by(given), read_letters(source, bootstrap)))
    if summary:
        kinds = Counter((one.letter.topic, one.letter.stage, one.letter.message) for one in found)
        done = Counter(
            (one.letter.topic, one.letter.stage, one.letter.message)
            for one in found
            if one.redriven
        )
        rows: list[dict[str, Any]] = [
            dict(zip(_SUMMARY, (*kind, count, done[kind]), strict=True))
            for kind, count in kinds.most_common()
        ]
        show(form, rows, _SUMMARY, empty="no dead letters")
        return
    rows = [
        {
            "letter": one.place,
            "topic": one.letter.topic,
            "partition": one.letter.partition,
            "offset": one.letter.offset,
            "stage": one.letter.stage,
            "deliveries": one.letter.delivery_count,
            "state": "redriven" if one.redriven else "dead",
            "error": one.letter.message,
        }
        for one in found
    ]
    show(form, rows, _COLUMNS, empty="no dead letters")
