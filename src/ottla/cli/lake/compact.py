"""`ottla lake compact`: merges small files of a table, proven by the same hash."""

from dataclasses import asdict
from typing import Any

import click

from ottla.base.quantities import counted, size_words
from ottla.cli.common import options
from ottla.cli.lake.declared import declares
from ottla.cli.lake.ledgers import import_lake
from ottla.cli.lake.pipelines import table_argument
from ottla.cli.text.output import show_one


@click.command(cls=declares("CompactOptions"))
@click.argument("target", metavar="DIR|PIPELINE.toml")
@options.bootstrap
@options.output
@click.pass_context
def compact(
    ctx: click.Context,
    /,
    target: str,
    bootstrap: str,
    form: str,
    **given: Any,
) -> None:
    """Make one of small neighbouring files of the table in DIR.

    \b
    ottla lake compact /lake/flights
    ottla lake compact flights.toml
    ottla lake compact /lake/flights --target-size 512MB --here

    Rows, offsets and the proof stay the same. Loads may go on meanwhile; killed at any step it
    changes nothing or all. The old files stay for readers until `ottla lake expire`.
    """  # noqa: D301
    lake = import_lake()
    table = table_argument(ctx, target, bootstrap, given["store_options"])
    given["store_options"] = table.store_options
    done = lake.compact(table.target, **given)
    if form == "json":
        show_one("json", asdict(done))
        return
    if done.manifest is None:
        click.echo("nothing to compact: no two neighbouring small files fit into one")
        return
    click.echo(
        f"{counted(done.removed, 'file')} ({size_words(done.removed_bytes)}) became "
        f"{counted(done.added, 'file')} ({size_words(done.added_bytes)}) in {done.seconds:.1f} s: "
        f"the same {counted(done.rows, 'row')}, hash {done.manifest.hash}"
    )
