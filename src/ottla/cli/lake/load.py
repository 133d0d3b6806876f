"""`ottla lake load` and `run`: load the new records of a topic into a table, exactly once.

`try-schema` shows the columns that records give.
"""

from dataclasses import asdict
from typing import Any

import click

from ottla.base.quantities import counted
from ottla.cli.common import options
from ottla.cli.common.completion import topics
from ottla.cli.lake.arguments import declares, import_lake, read_pipeline, with_spark
from ottla.cli.lake.exits import REFUSED_BY_RECORDS
from ottla.cli.lake.results import ProgressLine, show_result
from ottla.cli.text.output import show, show_one


@click.command(cls=declares("LoadOptions"))
@click.argument("topic", shell_complete=topics)
@click.option("--to", "target", required=True, metavar="DIR", help="The table's folder.")
@options.bootstrap
@options.output
def load(topic: str, target: str, bootstrap: str, form: str, **given: Any) -> None:
    """Load new records of TOPIC into the table DIR, exactly once.

    \b
    ottla lake load flights --to /lake/flights
    ottla lake load flights --to /lake/flights --from @1704067200000
    ottla lake load flights --to /lake/flights --group lake:flights
    ottla lake load flights --to /lake/flights --value json --on-bad-record dead-letter
    ottla lake load flights --to /lake/flights --partition-by hour --allowed-lateness 10m
    ottla lake load flights --to /lake/flights --master spark://head:7077 --conf spark.cores.max=8

    Run again, it loads only new records. Killed at any step it neither loses nor duplicates
    records. Afterwards a ledger accounts for every offset.
    """  # noqa: D301
    loads = import_lake()
    with ProgressLine(shown=form != "json") as line:
        watch = loads.Observer(line.on_step, line.on_progress)
        done = loads.load(topic, target, bootstrap=bootstrap, watch=watch, **given)
    _show(topic, target, done, form)


@click.command(cls=declares("SparkOptions"))
@click.argument("path", metavar="PIPELINE.toml")
@options.bootstrap
@options.output
@click.pass_context
def run(ctx: click.Context, /, path: str, bootstrap: str, form: str, **spark: Any) -> None:
    """Load a pipeline once, and account for every offset.

    \b
    ottla lake run flights.toml
    ottla lake run flights.toml --master spark://head:7077
    */5 * * * * ottla lake run /etc/ottla/flights.toml

    Exits with 0 if it loaded or nothing was new; 1 if it failed (nothing is committed, unless the
    error says so, or only the file of metrics could not be written); 2 if the file is wrong; 3 if
    records were deleted before they were loaded; 4 if another load committed first.
    """  # noqa: D301
    loads = import_lake()
    pipeline = with_spark(read_pipeline(ctx, path, bootstrap), spark)
    from ottla.lake.edges.pipeline import run as run_pipeline  # noqa: PLC0415  # As above.

    with ProgressLine(shown=form != "json") as line:
        done = run_pipeline(pipeline, watch=loads.Observer(line.on_step, line.on_progress))
    _show(pipeline.topic, pipeline.table, done, form)


def _show(topic: str, target: str, done: Any, form: str) -> None:
    if form == "json":
        show_one("json", {**asdict(done), "unexplained": 0})
    else:
        rows, files = counted(done.rows, "row"), counted(done.files, "file")
        show_result(topic, target, done, f"{rows} in {files} in {done.seconds:.1f} s")


@click.command("try-schema", cls=declares("DecodeOptions"))
@click.argument("topic")
@click.option("--last", type=click.IntRange(1), default=1_000, show_default=True,
              help="How many records to try, from the end.")  # fmt: skip
@click.option("--to", "target", default=None, metavar="DIR", help="As a load into this table.")
@options.bootstrap
@options.output
@click.pass_context
def try_schema(
    ctx: click.Context,
    /,
    topic: str,
    last: int,
    target: str | None,
    bootstrap: str,
    form: str,
    **decoding: Any,
) -> None:
    """Show what columns the last records of TOPIC would give.

    \b
    ottla lake try-schema flights --value json
    ottla lake try-schema orders --value avro --schema-file new.avsc --to /lake/orders --last 100000

    Nothing is written. Exits with 3 if records would be refused.
    """  # noqa: D301
    loads = import_lake()
    trial = loads.try_schema(topic, target=target, last=last, bootstrap=bootstrap, **decoding)
    columns = [
        {"column": one.name, "of": side, "type": str(one.type), "null": one.nullable}
        for side in ("key", "value")
        for one in trial.schema.of(side)
    ]
    refused = [
        {
            "records": one.records,
            "stage": one.stage,
            "error": one.error,
            "such as": ", ".join(f"{topic}-{p}@{offset}" for p, offset in one.examples),
        }
        for one in trial.refused
    ]
    changes = [
        {"change": one.what, "from": {str(p): o for p, o in sorted(one.offsets.items())}}
        for one in trial.changes
    ]
    if form == "json":
        answer = {"records": trial.records, "decoded": trial.decoded, "columns": columns}
        show_one("json", {**answer, "changes": changes, "refused": refused})
    else:
        show(form, columns, ["column", "of", "type", "null"], empty="no columns")
        for change in changes:
            places = ", ".join(f"{topic}-{p} offset {o}" for p, o in change["from"].items())
            click.echo(f"would change: {change['change']}, from {places}")
        if refused:
            show(form, refused, ["records", "stage", "error", "such as"])
        click.echo(f"{trial.decoded:,} of {counted(trial.records, 'record')} can be decoded")
    if refused:
        ctx.exit(REFUSED_BY_RECORDS)
