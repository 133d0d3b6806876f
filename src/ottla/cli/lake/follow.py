"""`ottla lake follow`: loads new records of a topic into a table until stopped."""

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
from ottla.cli.lake.changelog import keep_pipeline
from ottla.cli.lake.declared import declares
from ottla.cli.lake.ledgers import import_lake, skipped_lines
from ottla.cli.lake.lines.progress import ProgressLine
from ottla.cli.lake.lines.retries import show_recovery, show_trouble
from ottla.cli.lake.pipelines import is_pipeline, read_pipeline, with_spark

# Options that cannot be given together with a pipeline's file.
_OF_SPARK = ("master", "conf", "name")
_PACE = ("every", "max_bytes")
_BESIDE_A_FILE = frozenset(
    {
        "topic",
        "once",
        "end",
        "override",
        "dead_letter_topic",
        "here",
        "bootstrap",
        "form",
        *_PACE,
        *_OF_SPARK,
    }
)


@click.command(cls=declares("FollowOptions"))
@click.argument("topic", metavar="TOPIC|PIPELINE.toml", shell_complete=topics)
@click.option("--to", "target", metavar="DIR", help="The table's folder; not with a file.")
@options.bootstrap
@options.output
@click.pass_context
def follow(
    ctx: click.Context,
    /,
    topic: str,
    target: str | None,
    bootstrap: str,
    form: str,
    **given: Any,
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
    lake = import_lake()
    once, end = given["once"], given["end"]
    if once and end is not None:
        raise click.UsageError("--once is --until latest: say one of them")
    if is_pipeline(topic):
        _refuse_what_the_file_says(ctx)
        said = {name: value for name, value in given.items() if _is_said(ctx, name)}
        pipeline = with_spark(read_pipeline(ctx, topic, bootstrap), said)
        # The command's options overrule the file, and the file overrules the defaults.
        given |= {name: pipeline.options[name] for name in _PACE if name in pipeline.options}
        given |= said
        if pipeline.is_changelog:
            _refuse_what_changelogs_lack(ctx, pipeline, once)
            more = {name: given[name] for name in ("override", "dead_letter_topic")}
            keep_pipeline(pipeline, None if once else given["every"], form, more)
            return
        run: Callable[..., None] = _of_file(pipeline)
        topic, target = pipeline.topic, pipeline.table
        given = {name: given[name] for name in (*_PACE, *said) if name not in _OF_SPARK}
    elif target is None:
        raise click.UsageError("say --to DIR, or give a pipeline's file")
    else:
        run = partial(lake.follow, topic, target, bootstrap=bootstrap)
    with ProgressLine(shown=form != "json", says_end=False) as line:
        shown = _Shown(topic, target, form, line, given["every"], once=once, end=end)
        run(**given, watch=shown.watch)


def _is_said(ctx: click.Context, name: str) -> bool:
    return ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE or (
        name == "master" and ctx.params["master"] is not None
    )


def _of_file(pipeline: Any) -> Callable[..., None]:
    from ottla.lake.edges.pipeline_follow import follow_pipeline  # noqa: PLC0415  # Arrow is an extra.

    return partial(follow_pipeline, pipeline)


def _refuse_what_the_file_says(ctx: click.Context) -> None:
    for option in ctx.command.get_params(ctx):
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
    end = pipeline.load["end"]
    if end != "latest" and not once:
        raise click.UsageError(
            f"a changelog table (kind = {pipeline.kind}) is not followed until {end}, "
            "which [source] of the pipeline's file says: take that out, or use `ottla lake run`"
        )


class _Shown:
    """Shows a follow to people, and ends it on signals."""

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

    @property
    def watch(self) -> Any:
        """Return the `ottla.lake.Observer` of the follow."""
        return import_lake().Observer(
            on_step=self.on_step,
            on_progress=None if self._form == "json" else self._line.on_progress,
            on_commit=self.on_commit,
            on_trouble=self.on_trouble,
            on_recovery=self.on_recovery,
            stop=self.stop,
        )

    def on_step(self, step: str) -> None:
        if step == "files written":
            self._line.on_step(step)
        if step != "following":
            return
        # Set here, because Spark set its own handlers when it started.
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
