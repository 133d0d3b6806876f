"""`ottla lake follow`: what comes into a topic, into a table, until it is stopped."""

import json
import signal
import threading
from typing import Any

import click
from click.core import ParameterSource

from ottla.base.errors import OttlaError
from ottla.base.quantities import span_words
from ottla.cli import options
from ottla.cli.lake import load_options
from ottla.cli.lake.ledgers import import_lake, skipped_lines
from ottla.cli.lake.pipelines import is_pipeline, read_pipeline, with_spark
from ottla.cli.lake.spark_options import spark_options
from ottla.cli.lake.stores import store_options as with_store_options
from ottla.cli.text.moment import span_ms


def _span(_context: click.Context, _option: click.Parameter, text: str) -> int:
    found = span_ms(text)
    if not found:
        raise click.BadParameter(f"{text!r} is not a span like 500ms, 10s or 5m")
    return found


@click.command()
@click.argument("topic", metavar="TOPIC|PIPELINE.toml")
@click.option("--to", "target", metavar="DIR", help="The table's folder; not with a file.")
@click.option(
    "--every",
    "every_ms",
    default="10s",
    show_default=True,
    callback=_span,
    help="Commit what is new so long after the last commit, at the latest.",
)
@click.option(
    "--max-bytes",
    type=click.IntRange(min=1),
    default=128 << 20,
    show_default=True,
    help="Commit as soon as about so many bytes of the log are new, and no more at once.",
)
@click.option("--once", is_flag=True, help="End when all is loaded that was there at the start.")
@load_options.table_format
@with_store_options
@load_options.start("Where partitions start that are not in the table yet")
@load_options.group
@load_options.losses
@load_options.on_bad_timestamp("fail", "null")
@load_options.event_times
@load_options.file_sizes
@load_options.log_dirs
@spark_options
@options.bootstrap
@options.output
@click.pass_context
def follow(
    ctx: click.Context,
    /,
    topic: str,
    target: str | None,
    every_ms: int,
    max_bytes: int,
    once: bool,
    table_format: str | None,
    store_options: dict[str, str],
    start: str,
    group: str | None,
    skip_unreadable: bool,
    accept_loss: bool,
    on_bad_timestamp: str,
    log_dirs: tuple[str, ...],
    master: str | None,
    conf: dict[str, str],
    name: str | None,
    bootstrap: str,
    form: str,
    **more: Any,
) -> None:
    """Load what comes into TOPIC, exactly once, until stopped.

    \b
    ottla lake follow flights --to /lake/flights
    ottla lake follow flights --to /lake/flights --every 2s --group lake:flights
    ottla lake follow flights --to /lake/flights --once
    ottla lake follow flights.toml

    A line for each commit says what it added, and how far the table is behind the topic in records
    and in time. SIGTERM and Ctrl-C end it after the commit that runs. Killed at any step it neither
    loses nor doubles: start it again. Where two follow into one table, the older one stops.
    """  # noqa: D301
    lake = import_lake()
    events, sizes = load_options.event_settings(more), load_options.sizes(more)
    if is_pipeline(topic):
        pipeline = with_spark(read_pipeline(ctx, topic, bootstrap), master, name, conf)
        arguments, every_ms = _of_file(ctx, pipeline, every_ms, max_bytes)
    elif target is None:
        raise click.UsageError("say --to DIR, or give a pipeline's file")
    else:
        arguments = {
            "topic": topic,
            "target": target,
            "bootstrap": bootstrap,
            "start": start,
            "max_bytes": max_bytes,
            "every_ms": every_ms,
            "group": group,
            "skip_unreadable": skip_unreadable,
            "accept_loss": accept_loss,
            "on_bad_timestamp": on_bad_timestamp,
            "events": events,
            "sizes": sizes,
            "format": table_format,
            "store_options": store_options,
            "spark_settings": lake.SparkSettings(master, name, conf),
        }
    stop = threading.Event()

    def on_step(step: str) -> None:
        if step == "following":
            # Only now: Spark has set handlers of its own when it started.
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, lambda *_: stop.set())
            if form != "json":
                until = "until all is loaded that is there now" if once else span_words(every_ms)
                how = until if once else f"a commit every {until}, or sooner for more"
                click.echo(f"following {arguments['topic']} into {arguments['target']}: {how}")

    lake.follow(
        **arguments,
        once=once,
        log_dirs=log_dirs,
        stop=stop,
        on_commit=lambda progress: _show(
            arguments["topic"], progress, form, None if once else every_ms
        ),
        on_trouble=_show_trouble,
        on_step=on_step,
    )


def _of_file(
    ctx: click.Context, pipeline: Any, every_ms: int, max_bytes: int
) -> tuple[dict[str, Any], int]:
    """What `follow` takes of a pipeline, and how often it commits; options overrule the file."""
    from ottla.lake.pipeline.running import follow_arguments  # noqa: PLC0415  # Arrow is an extra.

    said = [ctx.get_parameter_source(one) for one in ("every_ms", "max_bytes")]
    if pipeline.every_s is not None and said[0] is not ParameterSource.COMMANDLINE:
        every_ms = round(pipeline.every_s * 1000)
    if pipeline.max_bytes is not None and said[1] is not ParameterSource.COMMANDLINE:
        max_bytes = pipeline.max_bytes
    found = follow_arguments(pipeline)
    return {**found, "every_ms": every_ms, "max_bytes": max_bytes}, every_ms


def _show(topic: str, progress: Any, form: str, every_ms: int | None) -> None:
    manifest = progress.manifest
    if form == "json":
        line = {
            "version": manifest.version,
            "rows": manifest.rows,
            "size_bytes": progress.size_bytes,
            "seconds": round(progress.seconds, 3),
            "lag_records": progress.lag_records,
            "lag_ms": progress.lag_ms,
            "positions": {str(p): offset for p, offset in sorted(manifest.positions.items())},
        }
        click.echo(json.dumps(line))
    else:
        coming = "" if every_ms is None else f"; next within {span_words(every_ms)}"
        click.echo(progress.line() + coming)
    for skipped in skipped_lines(topic, manifest.skipped):
        click.secho(skipped, fg="yellow", err=True)


def _show_trouble(error: OttlaError) -> None:
    click.secho(f"{error.message}; it is tried again", fg="yellow", err=True)
