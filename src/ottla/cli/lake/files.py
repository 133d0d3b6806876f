"""`ottla lake files`: the Parquet files that count in a table."""

import click

from ottla.cli import options
from ottla.cli.lake.ledgers import import_lake
from ottla.cli.lake.stores import store_options as with_store_options
from ottla.cli.text.output import show


@click.command()
@click.argument("target", metavar="DIR")
@with_store_options
@options.output
def files(target: str, store_options: dict[str, str], form: str) -> None:
    """List the Parquet files that count in the table in DIR.

    \b
    duckdb -c "select count(*) from read_parquet([$(ottla lake files /lake/flights | …)])"
    """  # noqa: D301
    paths = import_lake().files(target, store_options=store_options)
    if form == "json":
        show(form, [{"path": path} for path in paths], ["path"])
    else:
        click.echo("\n".join(paths))
