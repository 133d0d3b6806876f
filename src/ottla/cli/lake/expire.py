"""`ottla lake expire`: deletes files of a table that count no more."""

from dataclasses import asdict

import click

from ottla.base.quantities import counted, size_words
from ottla.cli import options
from ottla.cli.lake.ledgers import import_lake
from ottla.cli.lake.stores import store_options as with_store_options
from ottla.cli.text.output import show_one
from ottla.cli.text.words import span


@click.command()
@click.argument("target", metavar="DIR")
@click.option(
    "--older-than",
    "older_than_ms",
    default="7d",
    show_default=True,
    metavar="SPAN",
    callback=lambda _context, _option, text: span(text),
    help="Files stay for so long after the commit that removed them.",
)
@with_store_options
@options.output
def expire(target: str, older_than_ms: int, store_options: dict[str, str], form: str) -> None:
    """Delete files of the table in DIR that count no more.

    \b
    ottla lake expire /lake/flights --older-than 7d

    Compaction and replacement leave the files that they replace, for readers that have begun with
    them and for older versions of a Delta or Iceberg table. Manifests stay: they are the proof.
    """  # noqa: D301
    done = import_lake().expire(target, older_than_ms=older_than_ms, store_options=store_options)
    if form == "json":
        show_one("json", asdict(done))
        return
    click.echo(
        f"{counted(len(done.removed), 'file')} deleted ({size_words(done.removed_bytes)}) in "
        f"{done.seconds:.1f} s"
    )
    if done.kept:
        kept = "stay, since versions that stay or other programs have them"
        click.echo(f"{counted(len(done.kept), 'old file')} {kept}")
