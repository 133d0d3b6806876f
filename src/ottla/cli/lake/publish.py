"""`ottla lake publish`: publishes a table or files into a topic, exactly once."""

from dataclasses import asdict

import click

from ottla.base.quantities import counted
from ottla.cli.common import options
from ottla.cli.lake.arguments import import_lake
from ottla.cli.lake.results import ProgressLine
from ottla.cli.text.output import show_one


@click.command()
@click.argument("source")
@click.option("--to", "topic", required=True, metavar="TOPIC", help="The topic, which exists.")
@click.option(
    "--name", default=None, help="What this publish is known by when it goes on. Default: of both."
)
@click.option("--key", default=None, metavar="COLUMN", help="The records' keys.")
@click.option(
    "--value", default=None, metavar="COLUMN", help="Their values. Default: all columns as JSON."
)
@click.option("--timestamp", default=None, metavar="COLUMN", help="Their timestamps.")
@click.option("--headers", default=None, metavar="COLUMN", help="Their headers.")
@click.option(
    "--partition", default=None, metavar="COLUMN", help="Their partitions. Default: by the key."
)
@options.bootstrap
@options.output
def publish(
    source: str,
    topic: str,
    name: str | None,
    bootstrap: str,
    form: str,
    **columns: str | None,
) -> None:
    """Publish a lake table or files into TOPIC, exactly once.

    Files are Parquet, CSV or JSON lines.

    \b
    ottla lake publish /lake/flights --to flights-again
    ottla lake publish flights.csv --to flights --key carrier --timestamp time_hour
    ottla lake publish events.jsonl --to events

    Rows keep their order within each partition. Killed at any moment, the same command continues
    where it was: consumers with read_committed see each row exactly once.
    """  # noqa: D301
    lake = import_lake()
    with ProgressLine() as line:
        done = lake.publish(
            source,
            topic,
            bootstrap=bootstrap,
            fields=lake.Fields(**columns) if any(columns.values()) else None,
            name=name,
            on_progress=lambda now: line.renew(
                f"{counted(now.total, 'record')}, file {now.files_done + 1} of {now.files}: "
                f"{now.file} …"
            ),
        )
    if form == "json":
        show_one("json", asdict(done))
        return
    before = counted(done.total - done.records, "record")
    if not done.records:
        click.echo(f"nothing new in {source}; published before: {before}")
    else:
        click.echo(
            f"{counted(done.records, 'record')} in {done.seconds:.1f} s; published before: {before}"
        )
