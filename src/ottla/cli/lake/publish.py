"""`ottla lake publish`: publishes a table or files into a topic, exactly once."""

from dataclasses import asdict

import click

from ottla.base.quantities import counted
from ottla.cli.common import options
from ottla.cli.lake.arguments import import_lake
from ottla.cli.lake.results import ProgressLine
from ottla.cli.text import words
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
@click.option("--records-per-second", type=click.FloatRange(min=0, min_open=True), default=None)
@click.option("--bytes-per-second", type=words.size, metavar="RATE", help="Such as 10MB.")
@click.option("--dry-run", is_flag=True, help="Show what is left to publish, and do nothing.")
@options.bootstrap
@options.output
def publish(
    source: str,
    topic: str,
    name: str | None,
    records_per_second: float | None,
    bytes_per_second: int | None,
    dry_run: bool,
    bootstrap: str,
    form: str,
    **columns: str | None,
) -> None:
    """Publish a lake table or files into TOPIC, exactly once.

    Files are Parquet, CSV or JSON lines.

    \b
    ottla lake publish /lake/flights --to flights-again
    ottla lake publish flights.csv --to flights --key carrier --records-per-second 5000
    ottla lake publish events.jsonl --to events --dry-run

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
            pace=lake.PublishPace(records_per_second, bytes_per_second),
            dry_run=dry_run,
            on_progress=lambda now: line.renew(
                f"{counted(now.total, 'record')}, file {now.files_done + 1} of {now.files}: "
                f"{now.file} …"
            ),
        )
    if form == "json":
        show_one("json", asdict(done))
        return
    if done.left_out:
        left_out = counted(done.left_out, "file")
        click.echo(f"left out: {left_out} of other programs in {source}, which no load wrote")
    before = counted(done.total - done.records, "record")
    if dry_run:
        rows = "" if done.rows_left is None else f"{counted(done.rows_left, 'row')} in "
        left = counted(done.files_left, "file")
        click.echo(f"left to publish: {rows}{left}; published before: {before}")
    elif not done.records:
        click.echo(f"nothing new in {source}; published before: {before}")
    else:
        click.echo(
            f"{counted(done.records, 'record')} in {done.seconds:.1f} s; published before: {before}"
        )
