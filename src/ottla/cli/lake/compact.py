"""`ottla lake compact`: small files of a table become large ones, proven by the same hash."""

from dataclasses import asdict

import click

from ottla.base.quantities import counted, size_words
from ottla.cli.common import options
from ottla.cli.lake import load_options
from ottla.cli.lake.ledgers import import_lake
from ottla.cli.lake.pipelines import table_argument
from ottla.cli.lake.spark_options import spark_options
from ottla.cli.lake.stores import store_options as with_store_options
from ottla.cli.text.output import show_one


@click.command()
@click.argument("target", metavar="DIR|PIPELINE.toml")
@load_options.size("--target-size", "128MB", "How large files become at most.")
@load_options.size("--row-group-size", "64MB", "How large row groups become, in memory.")
@with_store_options
@spark_options
@options.bootstrap
@options.output
@click.pass_context
def compact(
    ctx: click.Context,
    target: str,
    target_size: int,
    row_group_size: int,
    store_options: dict[str, str],
    master: str | None,
    conf: dict[str, str],
    name: str | None,
    bootstrap: str,
    form: str,
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
    table = table_argument(ctx, target, bootstrap, store_options)
    done = lake.compact(
        table.target,
        target_bytes=target_size,
        row_group_bytes=row_group_size,
        store_options=table.store_options,
        spark_settings=lake.SparkSettings(master, name, conf),
    )
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
