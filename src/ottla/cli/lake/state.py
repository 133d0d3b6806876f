"""`ottla lake status`, `history`, `files` and `plan`: show a table, and what a load would do."""

import os
import re
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any
from urllib.parse import unquote

import click

from ottla.base.quantities import counted, iso, size_words
from ottla.cli.common import options
from ottla.cli.lake.arguments import (
    TableArgument,
    declares,
    import_lake,
    of_table,
    read_pipeline,
)
from ottla.cli.lake.exits import REFUSED_BY_RECORDS
from ottla.cli.lake.results import show_yellow
from ottla.cli.text.output import show, show_one

_STATUS_COLUMNS = ["partition", "position", "end", "lag_offsets", "lag"]
_COMMIT_COLUMNS = ["version", "kind", "time", "rows", "files", "size", "topic_id", "on_record"]
_PLAN_COLUMNS = ["partition", "position", "start", "end", "offsets", "size", "lag"]
_BUCKET = re.compile(r"/data/(event_(?:day|hour|month))=[^/]+/[^/]+$")


@click.command(cls=declares("TableOptions"))
@of_table
@click.option("--offline", is_flag=True, help="Do not ask the topic: no lag.")
@options.output
def status(table: TableArgument, offline: bool, form: str) -> None:
    """Show what a table contains, and how far it lags.

    \b
    ottla lake status flights.toml
    ottla lake status /lake/flights -o json

    Reads manifests and the names of files; `ottla lake verify` also checks their content.
    """  # noqa: D301
    import_lake()
    from ottla.lake.edges.status import status as status_of  # noqa: PLC0415  # Arrow is an extra.

    bootstrap = None if offline else table.bootstrap
    found = status_of(table.target, bootstrap, table.store_options)
    if form == "json":
        show_one(form, found.answer())
        return
    show_one(form, _summary(found))
    click.echo()
    rows = [{**row, "lag": _brief(row["lag_s"])} for row in found.rows_by_partition()]
    show(form, rows, _STATUS_COLUMNS, empty="no load yet")
    show_yellow(found.held_back)
    show_yellow(f"overridden: {problem}" for problem in found.overridden)
    show_yellow(f"{path} is of a load or task that did not count (yet)" for path in found.orphans)


def _summary(found: Any) -> dict[str, Any]:
    lag = "-" if found.lag_offsets is None else f"{found.lag_offsets:,} offsets"
    if found.lag_offsets:
        lag += f", {_brief(found.lag_s)}"
    return {
        "table": found.table,
        "format": found.format,
        "topic": found.topic,
        "topic_id": found.topic_id,
        "commits": f"{found.commits:,}, {found.loads:,} of them loads",
        "rows": f"{found.rows:,}",
        "files": f"{found.files:,}, {size_words(found.size_bytes)}",
        "last_load": None if found.last_load_ms is None else iso(found.last_load_ms),
        "lag": lag,
        "writer_epoch": found.writer_epoch,
        **({"event_time": found.complete} if found.complete else {}),
        **({"late_rows": f"{found.late_rows:,}"} if found.late_rows else {}),
    }


def _brief(seconds: float | None) -> str:
    from ottla.lake.job.progress import brief  # noqa: PLC0415  # Arrow is an extra.

    return "-" if seconds is None else brief(seconds)


@click.command(cls=declares("TableOptions"))
@of_table
@click.option("--last", type=click.IntRange(1), default=None, help="So many commits at most.")
@options.output
def history(table: TableArgument, last: int | None, form: str) -> None:
    """List the commits of a table, with unusual events.

    \b
    ottla lake history /lake/flights
    ottla lake history flights.toml --last 10 -o json

    Unusual events are accepted losses, overridden problems, unreadable offsets, dead letters and
    changed columns.
    """  # noqa: D301
    import_lake()
    from ottla.lake.edges.status import commits  # noqa: PLC0415  # Arrow is an extra.
    from ottla.lake.tables.opening import existing_table  # noqa: PLC0415  # As above.

    manifests = list(existing_table(table.target, table.store_options).history())
    found = commits(manifests)
    shown = found[-last:] if last else found
    rows = [{**row, "size": size_words(row["size_bytes"])} for row in shown]
    show(form, rows, _COMMIT_COLUMNS, empty="no commit yet")
    if form != "json" and manifests:
        total = counted(manifests[-1].total_rows, "row")
        click.echo(f"{counted(len(found), 'commit')}; the table holds {total}")


@click.command()
@click.argument("path", metavar="PIPELINE.toml")
@options.bootstrap
@options.output
@click.pass_context
def plan(ctx: click.Context, path: str, bootstrap: str, form: str) -> None:
    """Show what a run would load now; nothing is written.

    \b
    ottla lake plan flights.toml

    For each partition: the table's position, the offsets that would be read, about how many bytes
    these are, and the age of the first record that is not loaded yet. Exits with 3 if records are
    lost already and the pipeline does not accept that.
    """  # noqa: D301
    pipeline = read_pipeline(ctx, path, bootstrap)
    from ottla.lake.edges.planned_load import look  # noqa: PLC0415  # Arrow is an extra.

    found = look(pipeline)
    if form == "json":
        show_one(form, asdict(found))
    else:
        rows = [
            {**asdict(one), "size": size_words(one.size_bytes), "lag": _brief(one.lag_s)}
            for one in found.partitions
        ]
        show(form, rows, _PLAN_COLUMNS, empty="no partitions")
        show_yellow([*found.lost, *found.held_back])
        click.echo(_verdict(found))
    if found.lost and not pipeline.load["accept_loss"]:
        ctx.exit(REFUSED_BY_RECORDS)


def _verdict(found: Any) -> str:
    if not found.offsets:
        return f"nothing new in {found.topic}"
    behind = "" if found.lag_s is None else f", {_brief(found.lag_s)} behind"
    return (
        f"{counted(found.offsets, 'offset')} of {found.topic}, about "
        f"{size_words(found.size_bytes)}, in {counted(found.tasks, 'task')} into version "
        f"{found.version} of {found.table}{behind}"
    )


@click.command(cls=declares("TableOptions"))
@click.argument("target", metavar="DIR")
@click.option(
    "--sql",
    type=click.Choice(["duckdb"]),
    help="Print a view of these files, named after DIR, as a statement of this engine.",
)
@options.output
def files(target: str, sql: str | None, store_options: dict[str, str], form: str) -> None:
    """List the Parquet files that belong to the table in DIR.

    Read only these files: the folder also has files of running and of failed loads, and files that
    a compaction has replaced.

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
    """Return the name of the last folder in a path or URL."""
    scheme, separator, rest = target.partition("://")
    if separator and scheme.lower() == "file":
        target = unquote(rest)
    elif separator:
        return target.rstrip("/").rpartition("/")[2]
    return os.path.basename(os.path.abspath(target))


def _view(name: str, paths: Sequence[str]) -> str:
    """Return a DuckDB view of the files; it has the columns of all files, in their widest types.

    DuckDB would take `name=value` anywhere in a path as a column, which would hide the column of
    the same name in the files. So only the folders inside the table are used for a column.
    """
    if not paths:
        raise click.ClickException("the table holds no files yet: there is nothing to be viewed")
    quoted = ",\n  ".join("'" + path.replace("'", "''") + "'" for path in paths)
    called = '"' + name.replace('"', '""') + '"'
    columns, options = "*", "union_by_name = true, hive_partitioning = false"
    bucket = next(filter(None, map(_BUCKET.search, paths)), None)
    if bucket is not None:
        kind = "DATE" if bucket[1] == "event_day" else "VARCHAR"
        # Rows without an event time are in a folder whose name has no digit.
        found = f"regexp_extract(_ottla_file, '/{bucket[1]}=([0-9][^/]*)/[^/]*$', 1)"
        columns = f"* EXCLUDE (_ottla_file), nullif({found}, '')::{kind} AS {bucket[1]}"
        options += ", filename = '_ottla_file'"
    return (
        f"CREATE OR REPLACE VIEW {called} AS SELECT {columns} FROM read_parquet([\n  {quoted}\n], "
        f"{options});"
    )
