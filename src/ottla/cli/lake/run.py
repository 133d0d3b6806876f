"""`ottla lake run`: runs one load of a pipeline."""

from dataclasses import asdict
from typing import Any

import click

from ottla.base.quantities import counted
from ottla.cli.common import options
from ottla.cli.lake.declared import declares
from ottla.cli.lake.ledgers import LEDGER_COLUMNS, ledger_rows, skipped_lines
from ottla.cli.lake.lines.progress import ProgressLine
from ottla.cli.lake.pipelines import read_pipeline, with_spark
from ottla.cli.text.output import show, show_one


@click.command(cls=declares("SparkOptions"))
@click.argument("path", metavar="PIPELINE.toml")
@options.bootstrap
@options.output
@click.pass_context
def run(
    ctx: click.Context,
    /,
    path: str,
    bootstrap: str,
    form: str,
    **spark: Any,
) -> None:
    """Load once what a pipeline says, and account for every offset.

    \b
    ottla lake run flights.toml
    ottla lake run flights.toml --master spark://head:7077
    */5 * * * * ottla lake run /etc/ottla/flights.toml

    Exits with 0 where it loaded or nothing was new; 1 where it failed (nothing is committed, unless
    the error says so, or only a file of [report] could not be made); 2 where the file is wrong; 3
    where records were deleted before they were loaded; 4 where another load committed first.
    """  # noqa: D301
    pipeline = with_spark(read_pipeline(ctx, path, bootstrap), spark)
    from ottla.lake.edges import pipeline_run as running  # noqa: PLC0415  # Arrow is an extra.
    from ottla.lake.job.watch import Observer  # noqa: PLC0415  # As above.

    with ProgressLine(shown=form != "json") as line:
        watch = Observer(line.on_step, line.on_progress)
        done = running.run(pipeline, watch=watch).done
    if form == "json":
        show_one(form, {**asdict(done), "unexplained": 0})
        return
    total = done.manifest.total_rows if done.manifest else 0
    if not done.ledgers:
        click.echo(f"nothing new in {pipeline.topic}; the table holds {counted(total, 'row')}")
        return
    show(form, ledger_rows(done.ledgers), LEDGER_COLUMNS)
    for text in skipped_lines(pipeline.topic, done.skipped):
        click.secho(text, fg="yellow")
    click.echo(
        f"{counted(done.rows, 'row')} in {counted(done.files, 'file')} in {done.seconds:.1f} s; "
        f"the table holds {counted(total, 'row')}"
    )
