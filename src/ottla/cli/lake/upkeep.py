"""`ottla lake compact`, `expire` and `replace`: merge, delete and reload files of a table."""

from dataclasses import asdict
from typing import Any

import click

from ottla.base.quantities import counted, size_words
from ottla.cli.common import options
from ottla.cli.lake.arguments import (
    TableArgument,
    declares,
    given_options,
    import_lake,
    is_pipeline,
    of_table,
    read_pipeline,
    with_spark,
)
from ottla.cli.lake.results import show_ledgers, show_yellow, skipped_lines
from ottla.cli.text.output import show_one
from ottla.cli.text.words import span

# Options for decoding values. If one is given, the [decode] section of the file is ignored.
_DECODING = ("value", "key", "decode_file")


@click.command(cls=declares("CompactOptions"))
@of_table
@options.output
def compact(table: TableArgument, form: str, **given: Any) -> None:
    """Merge small neighbouring files of the table in DIR.

    \b
    ottla lake compact /lake/flights
    ottla lake compact flights.toml
    ottla lake compact /lake/flights --target-size 512MB --here

    Rows, offsets and the proof stay the same. Loads may run meanwhile. Killed at any step it
    changes all or nothing. The old files stay for readers until `ottla lake expire`.
    """  # noqa: D301
    given["store_options"] = table.store_options
    done = import_lake().compact(table.target, **given)
    if form == "json":
        show_one("json", asdict(done))
        return
    if done.manifest is None:
        click.echo("nothing to compact: no two neighbouring small files fit into one")
        return
    click.echo(
        f"{counted(done.removed, 'file')} ({size_words(done.removed_bytes)}) became "
        f"{counted(done.added, 'file')} ({size_words(done.added_bytes)}) in {done.seconds:.1f} s: "
        f"the same {counted(done.rows, 'row')}, hash {done.manifest.hash}"
    )


@click.command(cls=declares("TableOptions"))
@of_table
@click.option(
    "--older-than",
    "older_than_ms",
    default=None,
    metavar="SPAN",
    callback=lambda _context, _option, text: None if text is None else span(text),
    help="Keep versions that were current within this span; 7d where --keep is not given.",
)
@click.option("--keep", type=click.IntRange(1), help="Keep so many of the newest versions.")
@click.option("--dry-run", is_flag=True, help="Say what would go, and change nothing.")
@options.output
def expire(
    table: TableArgument, older_than_ms: int | None, keep: int | None, dry_run: bool, form: str
) -> None:
    """Delete files of the table in DIR that only old versions use.

    \b
    ottla lake expire /lake/flights --dry-run
    ottla lake expire /lake/flights --older-than 7d
    ottla lake expire flights.toml --keep 3

    Compaction and replacement keep the files that they replace, for running readers and for older
    versions of a Delta or Iceberg table. Old snapshots of an Iceberg table are deleted, too.
    Manifests stay, so the table is proven as before.
    """  # noqa: D301
    done = import_lake().expire(
        table.target,
        older_than_ms=older_than_ms,
        keep=keep,
        dry_run=dry_run,
        store_options=table.store_options,
    )
    if form == "json":
        show_one("json", {**asdict(done), "dry_run": dry_run})
        return
    if dry_run:
        for path in done.removed:
            click.echo(path)
    versions = f", which only versions before {done.oldest} have" if done.removed else ""
    click.echo(
        f"{counted(len(done.removed), 'file')} {'would be ' if dry_run else ''}deleted "
        f"({size_words(done.removed_bytes)}){versions}"
    )
    if done.kept:
        kept = "stay, since versions that are kept or other programs have them"
        click.echo(f"{counted(len(done.kept), 'old file')} {kept}")


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

    The table has loaded these offsets before. Other rows and the table's positions stay. All ranges
    change in one commit. If nothing differs, it says so and commits nothing, so that it may be
    repeated. Options that say how values are decoded also apply to later loads.
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
    show_ledgers(done.ledgers)
    show_yellow(skipped_lines(topic, done.manifest.skipped))
    show_yellow(
        f"{topic}-{partition}: {counted(count, 'row')} went that the topic does not hold"
        for partition, count in done.manifest.accepted_loss.items()
    )
    click.echo(
        f"{counted(done.rows, 'row')} in place of {done.removed_rows:,} in {done.seconds:.1f} s; "
        f"the table holds {counted(done.manifest.total_rows, 'row')}, "
        f"hash {done.manifest.total_hash}"
    )


def _boundaries(offsets: str | None, start: str | None, end: str | None) -> tuple[str, str]:
    """Return the ranges' start and end as boundaries."""
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
    """Return the options of the command, else of the file; a file cannot accept losses."""
    from ottla.lake.job.options import ReplaceOptions  # noqa: PLC0415  # Arrow is an extra.

    said = given_options(ctx, given)
    merged = with_spark(pipeline, said)
    found = {**merged.options_of(ReplaceOptions), "accept_loss": False, **said}
    found["conf"] = merged.options["conf"]
    found["store_options"] = {**pipeline.store_options, **said.get("store_options", {})}
    if any(name in said for name in _DECODING):
        found.pop("decode", None)
    return {**found, "bootstrap": pipeline.bootstrap}
