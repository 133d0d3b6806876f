"""`ottla lake expire`: deletes files of a table that are no longer live."""

from dataclasses import asdict

import click

from ottla.base.quantities import counted, size_words
from ottla.cli.common import options
from ottla.cli.lake.ledgers import import_lake
from ottla.cli.lake.pipelines import table_argument
from ottla.cli.lake.stores import store_options as with_store_options
from ottla.cli.text.output import show_one
from ottla.cli.text.words import span


@click.command()
@click.argument("target", metavar="DIR|PIPELINE.toml")
@click.option(
    "--older-than",
    "older_than_ms",
    default=None,
    metavar="SPAN",
    callback=lambda _context, _option, text: None if text is None else span(text),
    help="Keep versions that were current within this span; 7d where --keep is not given.",
)
@click.option("--keep", type=click.IntRange(1), help="Keep so many of the newest versions.")
@click.option("--dry-run", is_flag=True, help="Say what would go, and change nothing.")
@with_store_options
@options.bootstrap
@options.output
@click.pass_context
def expire(
    ctx: click.Context,
    target: str,
    older_than_ms: int | None,
    keep: int | None,
    dry_run: bool,
    store_options: dict[str, str],
    bootstrap: str,
    form: str,
) -> None:
    """Delete files of the table in DIR that only old versions have.

    \b
    ottla lake expire /lake/flights --dry-run
    ottla lake expire /lake/flights --older-than 7d
    ottla lake expire flights.toml --keep 3

    Compaction and replacement leave the files that they replace, for readers that have begun with
    them and for older versions of a Delta or Iceberg table. Of an Iceberg table the old snapshots
    go, too. Manifests stay: the table is proven as before.
    """  # noqa: D301
    lake = import_lake()
    table = table_argument(ctx, target, bootstrap, store_options)
    done = lake.expire(
        table.target,
        older_than_ms=older_than_ms,
        keep=keep,
        dry_run=dry_run,
        store_options=table.store_options,
    )
    if form == "json":
        show_one("json", {**asdict(done), "dry_run": dry_run})
        return
    if dry_run:
        for path in done.removed:
            click.echo(path)
    versions = f", which only versions before {done.oldest} have" if done.removed else ""
    click.echo(
        f"{counted(len(done.removed), 'file')} {'would be ' if dry_run else ''}deleted "
        f"({size_words(done.removed_bytes)}){versions}"
    )
    if done.kept:
        kept = "stay, since versions that are kept or other programs have them"
        click.echo(f"{counted(len(done.kept), 'old file')} {kept}")
