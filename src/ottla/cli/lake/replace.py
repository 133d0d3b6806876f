"""`ottla lake replace`: reads ranges of a table from the topic again."""

from dataclasses import asdict
from typing import Any

import click
from click.core import ParameterSource

from ottla.base.quantities import counted
from ottla.cli.common import options
from ottla.cli.lake.declared import declares
from ottla.cli.lake.ledgers import LEDGER_COLUMNS, import_lake, ledger_rows, skipped_lines
from ottla.cli.lake.pipelines import is_pipeline, read_pipeline, with_spark
from ottla.cli.text.output import show, show_one

# Options for decoding values; if one is given, the file's [decode] is ignored.
_DECODING = ("value", "key", "decode_file")


@click.command(cls=declares("ReplaceOptions"))
@click.argument("source", metavar="TOPIC|PIPELINE.toml")
@click.option("--to", "target", metavar="DIR", help="The table; a pipeline names its own.")
@click.option(
    "--offsets",
    metavar="PARTITION:FIRST-END,…",
    help="The ranges; each END is the first offset that is not replaced.",
)
@click.option(
    "--from",
    "start",
    metavar="BOUNDARY",
    help="Where they start: earliest, a time, or PARTITION:OFFSET,… (no other partitions).",
)
@click.option("--until", "end", metavar="BOUNDARY", help="Where they end, likewise.")
@options.bootstrap
@options.output
@click.pass_context
def replace(
    ctx: click.Context,
    /,
    source: str,
    target: str | None,
    offsets: str | None,
    start: str | None,
    end: str | None,
    bootstrap: str,
    form: str,
    **given: Any,
) -> None:
    """Read ranges of TOPIC again in place of a table's rows.

    \b
    ottla lake replace flights --to /lake/flights --offsets 0:100-200
    ottla lake replace flights --to /lake/flights --from @1704067200000 --until @1704153600000
    ottla lake replace flights --to /lake/flights --from 0:0,1:50 --until 0:100,1:80 --here
    ottla lake replace flights.toml --offsets 0:100-200

    The table has loaded these offsets before. Other rows stay, and so do its positions. The ranges
    change in one commit. Where nothing differs it says so and commits nothing, so that it may be
    repeated. Options that say how values are decoded hold for later loads, too.
    """  # noqa: D301
    starts, ends = _boundaries(offsets, start, end)
    lake = import_lake()
    topic, given = source, {**given, "bootstrap": bootstrap}
    if is_pipeline(source):
        if target is not None:
            raise click.BadOptionUsage("to", "a pipeline names its table: leave --to out")
        pipeline = read_pipeline(ctx, source, bootstrap)
        topic, target, given = pipeline.topic, pipeline.table, _of_pipeline(ctx, pipeline, given)
    if target is None:
        raise click.MissingParameter(ctx=ctx, param_type="option", param_hint="--to")
    done = lake.replace(topic, target, start=starts, end=ends, **given)
    if form == "json":
        show_one("json", asdict(done))
        return
    if done.manifest is None:
        click.echo(f"nothing differs: the table has the {counted(done.rows, 'row')} of the topic")
        return
    show(form, ledger_rows(done.ledgers), LEDGER_COLUMNS)
    for line in skipped_lines(topic, done.manifest.skipped):
        click.secho(line, fg="yellow")
    for partition, count in done.manifest.accepted_loss.items():
        gone = f"{topic}-{partition}: {counted(count, 'row')} went that the topic does not hold"
        click.secho(gone, fg="yellow")
    click.echo(
        f"{counted(done.rows, 'row')} in place of {done.removed_rows:,} in {done.seconds:.1f} s; "
        f"the table holds {counted(done.manifest.total_rows, 'row')}, "
        f"hash {done.manifest.total_hash}"
    )


def _boundaries(offsets: str | None, start: str | None, end: str | None) -> tuple[str, str]:
    """Return start and end in the form of boundaries."""
    if offsets is None:
        if start is None or end is None:
            raise click.UsageError("say which offsets: --offsets, or --from and --until")
        return start, end
    if start is not None or end is not None:
        raise click.UsageError("--offsets says both ends: leave --from and --until out")
    starts, ends = [], []
    for text in offsets.split(","):
        partition, _, range_ = text.strip().partition(":")
        first, _, behind = range_.partition("-")
        if not all(one.isdecimal() for one in (partition, first, behind)):
            raise click.BadParameter(f"{text!r} is not PARTITION:FIRST-END, as in 0:100-200")
        starts.append(f"{partition}:{first}")
        ends.append(f"{partition}:{behind}")
    return ",".join(starts), ",".join(ends)


def _of_pipeline(ctx: click.Context, pipeline: Any, given: dict[str, Any]) -> dict[str, Any]:
    """Return the file's options where the command has none, but never acceptance of losses."""
    from ottla.lake.job.options import ReplaceOptions  # noqa: PLC0415  # Arrow is an extra.

    said = {
        name: value
        for name, value in given.items()
        if ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE
        # `--here` is another word for a master.
        or (name == "master" and value is not None)
    }
    merged = with_spark(pipeline, said)
    found = {**merged.options_of(ReplaceOptions), "accept_loss": False, **said}
    found["conf"] = merged.options["conf"]
    found["store_options"] = {**pipeline.store_options, **said.get("store_options", {})}
    if any(name in said for name in _DECODING):
        found.pop("decode", None)
    found.pop("bootstrap", None)
    return {**found, "bootstrap": pipeline.bootstrap}
