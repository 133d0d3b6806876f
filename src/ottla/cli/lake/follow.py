"""`ottla lake follow`: what comes into a topic, into a table, until it is stopped."""

import json
import signal
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import click
from click.core import ParameterSource

from ottla.base.errors import OttlaError
from ottla.base.quantities import span_words
from ottla.cli.common import options
from ottla.cli.common.completion import topics
from ottla.cli.lake import load_options
from ottla.cli.lake.changelog import keep_pipeline
from ottla.cli.lake.decoding import declared, decode_options
from ottla.cli.lake.ledgers import import_lake, skipped_lines
from ottla.cli.lake.lines.progress import ProgressLine
from ottla.cli.lake.lines.retries import show_recovery, show_trouble
from ottla.cli.lake.pipelines import is_pipeline, read_pipeline, with_spark
from ottla.cli.lake.spark_options import spark_options
from ottla.cli.lake.stores import store_options as with_store_options
from ottla.cli.text import words

# What stands in a pipeline's file may not be said beside it.
_BESIDE_A_FILE = frozenset(
    {
        "topic",
        "every_ms",
        "max_bytes",
        "once",
        "end",
        "override",
        "dead_letter_topic",
        "here",
        "master",
        "conf",
        "name",
        "bootstrap",
        "form",
    }
)


@click.command()
@click.argument("topic", metavar="TOPIC|PIPELINE.toml", shell_complete=topics)
@click.option("--to", "target", metavar="DIR", help="The table's folder; not with a file.")
@click.option(
    "--every",
    "every_ms",
    default="10s",
    show_default=True,
    type=words.interval,
    help="Commit what is new so long after the last commit, at the latest.",
)
@click.option(
    "--max-bytes",
    type=words.size,
    default="128Mi",
    show_default=True,
    metavar="SIZE",
    help="Commit as soon as about so many bytes of the log are new, and no more at once.",
)
@click.option("--once", is_flag=True, help="End when all is loaded that was there at the start.")
@click.option(
    "--until",
    "end",
    default=None,
    help="End when the table is there: latest, a time, or PARTITION:OFFSET,… (other "
    "partitions: latest); also a time or offsets that are still to come.",
)
@load_options.table_format
@with_store_options
@load_options.start("Where partitions start that are not in the table yet")
@load_options.group
@load_options.losses
@load_options.override
@load_options.on_bad_timestamp("fail", "null", "dead-letter")
@load_options.event_times
@load_options.file_sizes
@load_options.dead_letter_topic
@decode_options
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
    end: str | None,
    table_format: str | None,
    store_options: dict[str, str],
    start: str,
    group: str | None,
    skip_unreadable: bool,
    accept_loss: bool,
    override: str | None,
    on_bad_timestamp: str,
    master: str | None,
    conf: dict[str, str],
    name: str | None,
    bootstrap: str,
    form: str,
    dead_letter_topic: str | None,
    **more: Any,
) -> None:
    """Load what comes into TOPIC, exactly once, until stopped.

    \b
    ottla lake follow flights --to /lake/flights
    ottla lake follow flights --to /lake/flights --every 2s --group lake:flights
    ottla lake follow flights --to /lake/flights --once
    ottla lake follow flights --to /lake/flights --value json --on-bad-record dead-letter
    ottla lake follow flights.toml

    A line for each commit says what it added, and how far the table is behind the topic in records
    and in time. SIGTERM and Ctrl-C end it after the commit that runs. Killed at any step it neither
    loses nor doubles: start it again. Where two follow into one table, the older one stops.
    """  # noqa: D301
    import_lake()
    if once and end is not None:
        raise click.UsageError("--once is --until latest: say one of them")
    given: dict[str, Any] = {
        "override": override,
        "dead_letter_topic": dead_letter_topic,
    }
    given |= {} if end is None else {"end": end}
    spark = (master, name, conf)
    run: Callable[..., None]
    events, sizes = load_options.event_settings(more), load_options.sizes(more)
    if is_pipeline(topic):
        _refuse_what_the_file_says(ctx)
        pipeline = with_spark(read_pipeline(ctx, topic, bootstrap), *spark)
        if pipeline.is_changelog:
            _refuse_what_changelogs_lack(ctx, pipeline, once)
            every_ms, _ = _pace(ctx, pipeline, every_ms, max_bytes)
            keep_pipeline(pipeline, None if once else every_ms, form, given)
            return
        run, topic, target = _of_file(pipeline), pipeline.topic, pipeline.table
        every_ms, max_bytes = _pace(ctx, pipeline, every_ms, max_bytes)
    elif target is None:
        raise click.UsageError("say --to DIR, or give a pipeline's file")
    else:
        run = partial(_follow, topic, target, spark)
        given |= {
            "bootstrap": bootstrap,
            "start": start,
            "group": group,
            "skip_unreadable": skip_unreadable,
            "accept_loss": accept_loss,
            "on_bad_timestamp": on_bad_timestamp,
            "events": events,
            "sizes": sizes,
            "decode": declared(more),
            "format": table_format,
            "store_options": store_options,
        }
    with ProgressLine(shown=form != "json", says_end=False) as line:
        shown = _Shown(topic, target, form, line, every_ms, once=once, end=end)
        run(
            **given,
            max_bytes=max_bytes,
            every_ms=every_ms,
            once=once,
            stop=shown.stop,
            on_commit=shown.on_commit,
            on_trouble=shown.on_trouble,
            on_recovery=shown.on_recovery,
            on_step=shown.on_step,
            on_progress=None if form == "json" else line.on_progress,
        )


def _follow(
    topic: str,
    target: str,
    spark: tuple[str | None, str | None, dict[str, str]],
    **arguments: Any,
) -> None:
    lake = import_lake()
    lake.follow(topic, target, spark_settings=lake.SparkSettings(*spark), **arguments)


def _of_file(pipeline: Any) -> Callable[..., None]:
    from ottla.lake.pipeline.following import follow_pipeline  # noqa: PLC0415  # Arrow is an extra.

    return partial(follow_pipeline, pipeline)


def _refuse_what_the_file_says(ctx: click.Context) -> None:
    for option in ctx.command.params:
        is_said = ctx.get_parameter_source(option.name or "") is ParameterSource.COMMANDLINE
        if is_said and option.name not in _BESIDE_A_FILE:
            raise click.UsageError(f"{option.opts[0]} has to stand in the pipeline's file")


def _refuse_what_changelogs_lack(ctx: click.Context, pipeline: Any, once: bool) -> None:
    for name in ("max_bytes", "end"):
        if ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            option = "--until" if name == "end" else "--max-bytes"
            raise click.UsageError(
                f"{option} is for tables of rows; a changelog table (kind = {pipeline.kind}) takes "
                "--every and --once, and `ottla lake run` ends at the file's [source] until"
            )
    if pipeline.end != "latest" and not once:
        raise click.UsageError(
            f"a changelog table (kind = {pipeline.kind}) is not followed until {pipeline.end}, "
            "which [source] of the pipeline's file says: take that out, or use `ottla lake run`"
        )


def _pace(ctx: click.Context, pipeline: Any, every_ms: int, max_bytes: int) -> tuple[int, int]:
    """How often it commits, and at how many bytes: options overrule the file."""
    said = [ctx.get_parameter_source(one) for one in ("every_ms", "max_bytes")]
    if pipeline.every_s is not None and said[0] is not ParameterSource.COMMANDLINE:
        every_ms = round(pipeline.every_s * 1000)
    if pipeline.max_bytes is not None and said[1] is not ParameterSource.COMMANDLINE:
        max_bytes = pipeline.max_bytes
    return every_ms, max_bytes


class _Shown:
    """What people see of a follow, and the signals that end it."""

    def __init__(
        self,
        topic: str,
        target: str,
        form: str,
        line: ProgressLine,
        every_ms: int,
        *,
        once: bool,
        end: str | None,
    ) -> None:
        self.stop = threading.Event()
        self._topic = topic
        self._target = target
        self._form = form
        self._line = line
        self._every_ms = None if once else every_ms
        self._end = end

    def on_step(self, step: str) -> None:
        if step == "files written":
            self._line.on_step(step)
        if step != "following":
            return
        # Only now: Spark has set handlers of its own when it started.
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: self.stop.set())
        if self._form != "json":
            how = "until all is loaded that is there now"
            if self._every_ms is not None:
                how = f"a commit every {span_words(self._every_ms)}, or sooner for more"
                how += "" if self._end is None else f", until {self._end}"
            click.echo(f"following {self._topic} into {self._target}: {how}")

    def on_commit(self, progress: Any) -> None:
        self._line.end()
        _show(self._topic, progress, self._form, self._every_ms)

    def on_trouble(self, error: OttlaError) -> None:
        self._line.end()
        show_trouble(error)

    def on_recovery(self, seconds: float) -> None:
        self._line.end()
        show_recovery(seconds)


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
