"""`ottla lake follow` and `changelog`: keep a table up to date with a topic."""

import json
from functools import partial
from typing import Any

import click
from click.core import ParameterSource

from ottla.base.quantities import counted, span_words
from ottla.cli.common import options
from ottla.cli.common.completion import topics
from ottla.cli.lake.arguments import (
    declares,
    given_options,
    import_lake,
    is_pipeline,
    read_pipeline,
    with_spark,
)
from ottla.cli.lake.results import (
    ProgressLine,
    RepeatedRun,
    ledger_rows,
    show_result,
    show_yellow,
    skipped_lines,
)
from ottla.cli.text.output import show_one

_OF_SPARK = ("master", "conf", "name")
_PACE = ("every", "max_bytes")
# Options that may be combined with a pipeline's file.
_BESIDE_A_FILE = frozenset(
    {
        "topic",
        "once",
        "override",
        "here",
        "bootstrap",
        "form",
        *_PACE,
        *_OF_SPARK,
    }
)


@click.command(cls=declares("ChangelogOptions"))
@click.argument("topic", shell_complete=topics)
@click.option("--to", "target", required=True, metavar="DIR", help="The table's folder.")
@options.bootstrap
@options.output
def changelog(topic: str, target: str, bootstrap: str, form: str, **given: Any) -> None:
    """Keep one row of each key of TOPIC in the table in DIR.

    \b
    ottla lake changelog planes --to /lake/planes
    ottla lake changelog planes --to /lake/planes --format delta
    ottla lake changelog planes --to /lake/positions --kind history
    ottla lake changelog planes --to /lake/planes --every 10s
    ottla lake changelog shop.orders --to /lake/orders --key json --value debezium-json

    The row of a key is its latest record. A record with a null value deletes the row, and so does a
    Debezium envelope with op d. A history has a row for each record, with the time for which it was
    valid (valid_from, valid_to). Run again, it applies only new records. Killed at any step it
    neither loses nor repeats a change. If two run with --every, the older one stops.
    """  # noqa: D301
    loads = import_lake()
    is_one_run = given["every"] is None
    with ProgressLine(shown=form != "json", says_end=is_one_run) as line:
        show_run = partial(_show_changes, topic, target, form)
        watch = RepeatedRun(line, show_run).watch
        done = loads.changelog(topic, target, bootstrap=bootstrap, watch=watch, **given)
    if is_one_run:
        show_run(done)


def _show_changes(topic: str, target: str, form: str, done: Any) -> None:
    if form == "json":
        total = done.manifest.total_rows if done.manifest else 0
        answer = {"topic": topic, "changes": done.rows, "rows": total, "seconds": done.seconds}
        show_one("json", {**answer, "ledgers": ledger_rows(done.ledgers), "unexplained": 0})
    else:
        applied = f"{counted(done.rows, 'change')} applied in {done.seconds:.1f} s"
        written = f"{counted(done.files, 'file')} written"
        show_result(topic, target, done, f"{applied}; {written}")


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
    """Load new records of TOPIC, exactly once, until stopped.

    \b
    ottla lake follow flights --to /lake/flights
    ottla lake follow flights --to /lake/flights --every 2s --group lake:flights
    ottla lake follow flights --to /lake/flights --once
    ottla lake follow flights --to /lake/flights --value json --on-bad-record dead-letter
    ottla lake follow flights.toml

    A line for each commit says what it added, and how far the table is behind the topic in records
    and in time. SIGTERM and Ctrl-C end it after the current commit. Killed at any step it neither
    loses nor duplicates records: start it again. If two follow into one table, the older one stops.
    """  # noqa: D301
    lake = import_lake()
    if is_pipeline(topic):
        _follow_file(ctx, topic, bootstrap, form, given)
    elif target is None:
        raise click.UsageError("say --to DIR, or give a pipeline's file")
    else:
        with ProgressLine(shown=form != "json", says_end=False) as line:
            watch = _watch(topic, target, form, line, given)
            lake.follow(topic, target, bootstrap=bootstrap, watch=watch, **given)


def _follow_file(
    ctx: click.Context, path: str, bootstrap: str, form: str, given: dict[str, Any]
) -> None:
    """Follow a topic by a pipeline's file. The command's options override it."""
    from ottla.lake.edges import pipeline as pipelines  # noqa: PLC0415  # Arrow is an extra.

    for option in ctx.command.get_params(ctx):
        is_said = ctx.get_parameter_source(option.name or "") is ParameterSource.COMMANDLINE
        if is_said and option.name not in _BESIDE_A_FILE:
            raise click.UsageError(f"{option.opts[0]} has to stand in the pipeline's file")
    said = given_options(ctx, given)
    pipeline = with_spark(read_pipeline(ctx, path, bootstrap), said)
    of_file = {name: pipeline.options[name] for name in _PACE if name in pipeline.options}
    given = given | of_file | said
    end = pipeline.load["end"]
    if end != "latest" and not given["once"]:
        raise click.UsageError(
            f"a table is not followed until {end}, which [source] of the pipeline's file says: "
            "take that out, or use `ottla lake run`"
        )
    with ProgressLine(shown=form != "json", says_end=False) as line:
        if pipeline.is_changelog:
            _refuse_what_changelogs_lack(ctx, pipeline)
            show_run = partial(_show_changes, pipeline.topic, pipeline.table, form)
            pipelines.keep_pipeline(
                pipeline,
                every=None if given["once"] else given["every"],
                override=given["override"],
                watch=RepeatedRun(line, show_run).watch,
            )
        else:
            watch = _watch(pipeline.topic, pipeline.table, form, line, given)
            chosen = {name: given[name] for name in (*_PACE, *said) if name not in _OF_SPARK}
            pipelines.follow_pipeline(pipeline, **chosen, watch=watch)


def _refuse_what_changelogs_lack(ctx: click.Context, pipeline: Any) -> None:
    if ctx.get_parameter_source("max_bytes") is ParameterSource.COMMANDLINE:
        raise click.UsageError(
            f"--max-bytes is for tables of rows; a changelog table (kind = {pipeline.kind}) takes "
            "--every and --once"
        )


def _watch(topic: str, target: str, form: str, line: ProgressLine, given: dict[str, Any]) -> Any:
    """Return an Observer that shows the start and the commits of a follow."""
    pace = None if given["once"] else span_words(given["every"])

    def show_start() -> None:
        if form == "json":
            return
        how = "until all is loaded that is there now"
        if pace is not None:
            how = f"a commit every {pace}, or sooner for more"
        click.echo(f"following {topic} into {target}: {how}")

    def show_commit(progress: Any) -> None:
        manifest = progress.manifest
        if form == "json":
            answer = {
                "version": manifest.version,
                "rows": manifest.rows,
                "size_bytes": progress.size_bytes,
                "seconds": round(progress.seconds, 3),
                "lag_records": progress.lag_records,
                "lag_ms": progress.lag_ms,
                "positions": {str(p): offset for p, offset in sorted(manifest.positions.items())},
            }
            click.echo(json.dumps(answer))
        else:
            click.echo(progress.line() + ("" if pace is None else f"; next within {pace}"))
        show_yellow(skipped_lines(topic, manifest.skipped), err=True)

    return RepeatedRun(line, show_commit, show_start).watch
