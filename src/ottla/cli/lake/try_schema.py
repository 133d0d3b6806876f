"""`ottla lake try-schema`: tries columns on the last records of a topic; writes nothing."""

from typing import Any

import click

from ottla.base.quantities import counted
from ottla.cli.common import options
from ottla.cli.lake.declared import declares
from ottla.cli.lake.exits import REFUSED_BY_RECORDS
from ottla.cli.lake.ledgers import import_lake
from ottla.cli.text.output import show, show_one


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
    """Say what columns the last records of TOPIC would give.

    \b
    ottla lake try-schema flights --value json
    ottla lake try-schema orders --value avro --schema-file new.avsc --to /lake/orders --last 100000

    Nothing is written. Exits with 3 where records would be refused.
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
