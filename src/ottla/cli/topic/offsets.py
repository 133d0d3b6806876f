"""`ottla topic offsets`: the start and end of logs, and the first record at a time."""

from typing import Any

import click

from ottla.base.quantities import iso
from ottla.cli.common import options
from ottla.cli.common.completion import topics
from ottla.cli.common.connect import with_admin
from ottla.cli.text.output import show
from ottla.cli.text.places import METAVAR, named
from ottla.cli.text.words import moment
from ottla.client.admin import Admin
from ottla.client.consumer.offsets import EARLIEST, LATEST

_COLUMNS = ["topic", "partition", "start_offset", "end_offset"]
_AT_COLUMNS = [*_COLUMNS, "offset", "time"]

_ENDS = {"earliest": EARLIEST, "beginning": EARLIEST, "latest": LATEST, "end": LATEST}


def moment_or_end(text: str) -> int:
    """A time, or one end of the log by its number in the protocol."""
    return _ENDS[text] if text in _ENDS else moment(text)


@click.command()
@click.argument("words", nargs=-1, required=True, metavar=METAVAR, shell_complete=topics)
@click.option(
    "--at",
    "time_ms",
    type=moment_or_end,
    metavar="TIME",
    help="Also the first record of then or later; or earliest, or latest.",
)
@options.bootstrap
@options.output
def offsets(words: tuple[str, ...], time_ms: int | None, bootstrap: str, form: str) -> None:
    """Show where the logs of partitions begin and end. With --at also what came when.

    \b
    ottla topic offsets flights
    ottla topic offsets flights planes-0 --at 10m
    ottla topic offsets flights --at '2024-01-31 09:00' -o json

    A topic's name stands for all of its partitions. No offset is shown where all records are
    older than the time.
    """  # noqa: D301

    async def work(admin: Admin) -> list[dict[str, Any]]:
        places = await named(admin, words)
        starts = await admin.logs.offsets(dict.fromkeys(places, EARLIEST))
        ends = await admin.logs.offsets(dict.fromkeys(places, LATEST))
        at = {} if time_ms is None else await admin.logs.offsets(dict.fromkeys(places, time_ms))
        rows: list[dict[str, Any]] = []
        for place in places:
            row: dict[str, Any] = {
                "topic": place.topic,
                "partition": place.partition,
                "start_offset": starts[place].offset,
                "end_offset": ends[place].offset,
            }
            if place in at:
                offset, timestamp_ms = at[place].offset, at[place].timestamp_ms
                row["offset"] = offset if offset >= 0 else None
                # An end of the log has no record, and so no time.
                row["timestamp"] = timestamp_ms if timestamp_ms >= 0 else None
                row["time"] = iso(timestamp_ms) if timestamp_ms >= 0 else None
            rows.append(row)
        return rows

    rows = with_admin(bootstrap, work)
    show(form, rows, _COLUMNS if time_ms is None else _AT_COLUMNS)
