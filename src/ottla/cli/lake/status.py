"""`ottla lake status`: shows a table's state, and how far its topic is ahead."""

from typing import Any

import click

from ottla.base.quantities import iso, size_words
from ottla.cli.common import options
from ottla.cli.lake.ledgers import import_lake
from ottla.cli.lake.pipelines import table_argument
from ottla.cli.lake.stores import store_options as with_store_options
from ottla.cli.text.output import show, show_one

_COLUMNS = ["partition", "position", "end", "lag_offsets", "lag"]


@click.command()
@click.argument("target", metavar="DIR|PIPELINE.toml")
@click.option("--offline", is_flag=True, help="Do not ask the topic: no lag.")
@with_store_options
@options.bootstrap
@options.output
@click.pass_context
def status(
    ctx: click.Context,
    target: str,
    offline: bool,
    store_options: dict[str, str],
    bootstrap: str,
    form: str,
) -> None:
    """Say what a table holds, and how far it is behind.

    \b
    ottla lake status flights.toml
    ottla lake status /lake/flights -o json

    Reads manifests and names of files, not the files: `ottla lake verify` proves them.
    """  # noqa: D301
    import_lake()
    from ottla.lake.edges import pipeline_state as looking  # noqa: PLC0415  # Arrow is an extra.

    table = table_argument(ctx, target, bootstrap, store_options)
    found = looking.status(table.target, None if offline else table.bootstrap, table.store_options)
    if form == "json":
        show_one(form, found.answer())
        return
    show_one(form, _summary(found))
    click.echo()
    rows = [{**row, "lag": _brief(row["lag_s"])} for row in found.rows_by_partition()]
    show(form, rows, _COLUMNS, empty="no load yet")
    for line in found.held_back:
        click.secho(line, fg="yellow")
    for problem in found.overridden:
        click.secho(f"overridden: {problem}", fg="yellow")
    for path in found.orphans:
        click.secho(f"{path} is of a load or task that did not count (yet)", fg="yellow")


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
    from ottla.lake.job.progress import brief  # noqa: PLC0415  # As above.

    return "-" if seconds is None else brief(seconds)
