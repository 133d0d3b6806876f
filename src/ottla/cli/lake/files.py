"""`ottla lake files`: lists the live Parquet files of a table."""

import os
import re
from collections.abc import Sequence
from urllib.parse import unquote

import click

from ottla.cli.common import options
from ottla.cli.lake.ledgers import import_lake
from ottla.cli.lake.stores import store_options as with_store_options
from ottla.cli.text.output import show

_BUCKET = re.compile(r"/data/(event_(?:day|hour|month))=[^/]+/[^/]+$")


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
        click.echo(_view(_name(target), paths))
    elif form == "json":
        show(form, [{"path": path} for path in paths], ["path"])
    else:
        click.echo("\n".join(paths))


def _name(target: str) -> str:
    """Return the last folder of a path or URL."""
    scheme, separator, rest = target.partition("://")
    if separator and scheme.lower() == "file":
        target = unquote(rest)
    elif separator:
        return target.rstrip("/").rpartition("/")[2]
    return os.path.basename(os.path.abspath(target))


def _view(name: str, paths: Sequence[str]) -> str:
    """Return a DuckDB statement; it has the columns of all files, in their widest types.

    DuckDB would read `name=value` anywhere in a path as a column that overwrites the files' own. So
    only the table's own folders are used as a column.
    """
    if not paths:
        raise click.ClickException("the table holds no files yet: there is nothing to be viewed")
    quoted = ",\n  ".join("'" + path.replace("'", "''") + "'" for path in paths)
    called = '"' + name.replace('"', '""') + '"'
    columns, options = "*", "union_by_name = true, hive_partitioning = false"
    bucket = next(filter(None, map(_BUCKET.search, paths)), None)
    if bucket is not None:
        kind = "DATE" if bucket[1] == "event_day" else "VARCHAR"
        # A bucket without a digit is the folder of rows without an event time.
        found = f"regexp_extract(_ottla_file, '/{bucket[1]}=([0-9][^/]*)/[^/]*$', 1)"
        columns = f"* EXCLUDE (_ottla_file), nullif({found}, '')::{kind} AS {bucket[1]}"
        options += ", filename = '_ottla_file'"
    return (
        f"CREATE OR REPLACE VIEW {called} AS SELECT {columns} FROM read_parquet([\n  {quoted}\n], "
        f"{options});"
    )
