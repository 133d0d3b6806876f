"""`ottla lake files`: the Parquet files that count in a table."""

from collections.abc import Sequence

import click

from ottla.cli import options
from ottla.cli.lake.ledgers import import_lake
from ottla.cli.lake.stores import store_options as with_store_options
from ottla.cli.text.output import show


@click.command()
@click.argument("target", metavar="DIR")
@click.option(
    "--sql",
    type=click.Choice(["duckdb"]),
    help="Print a view of these files, named after DIR, as a statement of this engine.",
)
@with_store_options
@options.output
def files(target: str, sql: str | None, store_options: dict[str, str], form: str) -> None:
    """List the Parquet files that count in the table in DIR.

    Read these and no others: a folder also has files of loads that run, that failed, and that a
    compaction has replaced.

    \b
    ottla lake files /lake/flights --sql duckdb > flights.sql
    duckdb -init flights.sql -c "select count(*) from flights"
    """  # noqa: D301
    paths = import_lake().files(target, store_options=store_options)
    if sql is not None:
        click.echo(_view(target.rstrip("/").rpartition("/")[2], paths))
    elif form == "json":
        show(form, [{"path": path} for path in paths], ["path"])
    else:
        click.echo("\n".join(paths))


def _view(name: str, paths: Sequence[str]) -> str:
    """A statement of DuckDB; columns of all files, in the widest type that one has."""
    if not paths:
        raise click.ClickException("the table holds no files yet: there is nothing to be viewed")
    quoted = ",\n  ".join("'" + path.replace("'", "''") + "'" for path in paths)
    called = '"' + name.replace('"', '""') + '"'
    return (
        f"CREATE OR REPLACE VIEW {called} AS SELECT * FROM read_parquet([\n  {quoted}\n], "
        "union_by_name = true);"
    )
