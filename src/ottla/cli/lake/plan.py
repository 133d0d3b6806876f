"""`ottla lake plan`: shows what a run of a pipeline would load, without loading it."""

from typing import Any

import click

from ottla.base.quantities import counted, size_words
from ottla.cli.common import options
from ottla.cli.lake.exits import REFUSED_BY_RECORDS
from ottla.cli.lake.pipelines import read_pipeline
from ottla.cli.text.output import show, show_one

_COLUMNS = ["partition", "position", "start", "end", "offsets", "size", "lag"]


@click.command()
@click.argument("path", metavar="PIPELINE.toml")
@options.bootstrap
@options.output
@click.pass_context
def plan(ctx: click.Context, path: str, bootstrap: str, form: str) -> None:
    """Say what a run would load now; nothing is written.

    \b
    ottla lake plan flights.toml

    For each partition: where the table stands, where reading starts and ends, about how many bytes
    that is, and how old the first record is that is not loaded yet. Exits with 3 where records are
    lost already and the pipeline does not accept it.
    """  # noqa: D301
    pipeline = read_pipeline(ctx, path, bootstrap)
    from ottla.lake.edges.pipeline_state import look  # noqa: PLC0415  # Arrow is an extra.

    found = look(pipeline)
    if form == "json":
        show_one(form, found.answer())
    else:
        show(form, [_shown(row) for row in found.rows()], _COLUMNS, empty="no partitions")
        for line in (*found.lost, *found.held_back):
            click.secho(line, fg="yellow")
        click.echo(_verdict(found))
    if found.lost and not pipeline.load["accept_loss"]:
        ctx.exit(REFUSED_BY_RECORDS)


def _shown(row: dict[str, Any]) -> dict[str, Any]:
    from ottla.lake.job.progress import brief  # noqa: PLC0415  # As above.

    lag = "-" if row["lag_s"] is None else brief(row["lag_s"])
    return {**row, "size": size_words(row["size_bytes"]), "lag": lag}


def _verdict(found: Any) -> str:
    if not found.offsets:
        return f"nothing new in {found.topic}"
    from ottla.lake.job.progress import brief  # noqa: PLC0415  # As above.

    behind = "" if found.lag_s is None else f", {brief(found.lag_s)} behind"
    return (
        f"{counted(found.offsets, 'offset')} of {found.topic}, about "
        f"{size_words(found.size_bytes)}, in {counted(found.tasks, 'task')} into version "
        f"{found.version} of {found.table}{behind}"
    )
