"""`ottla produce`: sends lines as records."""

import asyncio
import sys
from pathlib import Path
from typing import Any

import click

from ottla.cli.common import options
from ottla.cli.common.completion import topics
from ottla.cli.produce.lines import size_of
from ottla.cli.produce.sender import Bar, Form, Sent, send
from ottla.cli.text.output import show_one
from ottla.cli.text.words import unescaped
from ottla.client.producer.options import Acks, Codec

_ACKS: dict[str, Acks] = {"0": 0, "1": 1, "all": "all"}
# A rate is shown only for at least this many records and this much time.
_RATED_RECORDS = 100
_RATED_S = 0.5


@click.command()
@click.argument("topic", shell_complete=topics)
@click.option(
    "--file",
    "-f",
    "files",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Send the lines of this file instead of standard input. May be given again.",
)
@click.option(
    "--key-separator",
    "-K",
    "separator",
    metavar="TEXT",
    help="Each line is KEY TEXT VALUE, split at the first TEXT; \\t is a tab.",
)
@click.option(
    "--json", "as_json", is_flag=True, help="Each line is a record as `ottla consume --json` shows."
)
@click.option("--null", metavar="TEXT", help="A value or key that reads TEXT is null.")
@click.option(
    "--header", "-H", "headers", multiple=True, metavar="NAME=VALUE", help="On every record."
)
@click.option(
    "--compression",
    "-z",
    type=click.Choice(["none", "gzip", "snappy", "lz4", "zstd"]),
    default="none",
    show_default=True,
    help="Codec of the batches.",
)
@click.option(
    "--acks",
    type=click.Choice(list(_ACKS)),
    default="all",
    show_default=True,
    help="When a record counts as delivered: once sent, on the leader, on all in-sync replicas.",
)
@click.option("--partition", "-p", type=click.IntRange(0), help="Send all records there.")
@options.bootstrap
@options.output
@click.pass_context
def produce(
    ctx: click.Context,
    topic: str,
    files: tuple[Path, ...],
    separator: str | None,
    as_json: bool,
    null: str | None,
    headers: tuple[str, ...],
    compression: Codec,
    acks: str,
    partition: int | None,
    bootstrap: str,
    form: str,
) -> None:
    """Send each line of standard input, or of files, to TOPIC as a record.

    \b
    echo hello | ottla produce greetings
    ottla produce flights --file flights.jsonl --compression zstd
    printf 'N123\\t{"delay": 4}\\n' | ottla produce flights -K '\\t'
    tail -F app.log | ottla produce logs --header host=web1
    ottla consume flights --json | ottla produce copy --json

    With --json keys, values and headers arrive byte for byte, null and binary ones as well, with
    their timestamps and partitions. A missing timestamp is set to now, and a missing partition is
    chosen by the key.

    A missing topic is created, if the cluster allows that. Records with a key go to the partition
    that Java's producer would choose. Shows how many records were delivered, and the first error;
    exits with 1 if there was an error.
    """  # noqa: D301
    if as_json and (separator is not None or null is not None):
        raise click.UsageError("--json says key and null itself: leave out --key-separator, --null")
    shape = Form(
        as_json=as_json,
        separator=_bytes_of(separator, "--key-separator"),
        null=None if null is None else unescaped(null).encode(),
        headers=[_header(text) for text in headers],
        partition=partition,
        acks=_ACKS[acks],
        compression=compression,
    )
    typing = not files and sys.stdin.isatty()
    if typing:
        click.echo("a line is a record; ctrl-D ends", err=True)
    bar = Bar(topic, size_of(files), shown=not typing)
    sent = asyncio.run(send(bootstrap, topic, files, shape, bar))
    _report(topic, sent, bar.read_bytes, form)
    if sent.first_error is not None:
        ctx.exit(1)
    if sent.interrupted:
        ctx.exit(130)


def _report(topic: str, sent: Sent, read_bytes: int, form: str) -> None:
    seconds = max(sent.finished_s - sent.started_s, 1e-6)
    if form == "json":
        show_one("json", _answer(topic, sent, read_bytes, seconds))
    else:
        noun = "record" if sent.delivered == 1 else "records"
        words = f"{sent.delivered:,} {noun} to {topic}"
        if len(sent.partitions) == 1:
            ((partition, (_, first, last)),) = sent.partitions.items()
            if first >= 0:
                offsets = f"offset {first}" if first == last else f"offsets {first} to {last}"
                words += f", partition {partition}, {offsets}"
        elif sent.partitions:
            words += f", {len(sent.partitions)} partitions"
        if seconds >= _RATED_S and sent.delivered >= _RATED_RECORDS:
            rate, megabytes = sent.delivered / seconds, read_bytes / seconds / 1e6
            words += f" in {seconds:.1f} s ({rate:,.0f}/s, {megabytes:,.1f} MB/s)"
        if sent.created:
            words += "; the topic did not exist and was created"
        click.echo(words)
    if sent.first_error is not None:
        lost = sent.accepted - sent.delivered
        what = f"{lost:,} of {sent.accepted:,} records were not delivered; first: " if lost else ""
        error = sent.first_error
        click.secho(f"ottla: {what}{error.message} ({error.code.name})", fg="red", err=True)


def _answer(topic: str, sent: Sent, read_bytes: int, seconds: float) -> dict[str, Any]:
    error = sent.first_error
    return {
        "topic": topic,
        "created": sent.created,
        "delivered": sent.delivered,
        "failed": sent.accepted - sent.delivered,
        "bytes": read_bytes,
        "seconds": round(seconds, 3),
        "partitions": [
            {"partition": partition, "records": count, "first_offset": first, "last_offset": last}
            for partition, (count, first, last) in sorted(sent.partitions.items())
        ],
        "error": None if error is None else {"code": error.code.name, "message": error.message},
    }


def _bytes_of(text: str | None, option: str) -> bytes | None:
    if text is None:
        return None
    if not text:
        raise click.BadParameter("a separator has at least one letter", param_hint=option)
    return unescaped(text).encode()


def _header(text: str) -> tuple[str, bytes | None]:
    name, sign, value = text.partition("=")
    if not sign or not name:
        raise click.BadParameter(f"{text!r} is not NAME=VALUE", param_hint="--header")
    return name, value.encode()
