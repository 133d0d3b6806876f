"""`ottla lake changelog`: one row of each key of a topic, brought up to date."""

import signal
import threading
from typing import Any

import click

from ottla.base.errors import OttlaError
from ottla.base.quantities import counted
from ottla.cli.common import options
from ottla.cli.common.completion import topics
from ottla.cli.lake import load_options
from ottla.cli.lake.decoding import declared, decode_options
from ottla.cli.lake.ledgers import (
    LEDGER_COLUMNS,
    columns_changed,
    import_lake,
    ledger_rows,
    letters_line,
    skipped_lines,
)
from ottla.cli.lake.lines.progress import ProgressLine
from ottla.cli.lake.lines.retries import show_recovery, show_trouble
from ottla.cli.lake.spark_options import spark_options
from ottla.cli.lake.stores import store_options as with_store_options
from ottla.cli.text import words
from ottla.cli.text.output import show, show_one


@click.command()
@click.argument("topic", shell_complete=topics)
@click.option("--to", "target", required=True, metavar="DIR", help="The table's folder.")
@click.option(
    "--kind",
    "kind",
    type=click.Choice(["latest", "history"]),
    default=None,
    help="What a new table keeps of each key; latest by default.",
)
@click.option(
    "--buckets",
    type=click.IntRange(1, 1024),
    default=None,
    help="Over how many files a new table spreads its keys; by default as many as fit its size.",
)
@load_options.table_format
@with_store_options
@load_options.start("Where the first run starts")
@load_options.end
@load_options.group
@click.option(
    "--on-null-key",
    type=click.Choice(["fail", "skip"]),
    default="fail",
    show_default=True,
    help="What becomes of a record without a key; skipped ones are counted as keyless.",
)
@load_options.losses
@load_options.override
@click.option(
    "--reconcile",
    is_flag=True,
    help="Read the log again from its start: rows go whose deletions compaction has removed.",
)
@load_options.on_bad_timestamp("fail", "null", "dead-letter")
@load_options.dead_letter_topic
@click.option(
    "--every",
    "every_ms",
    default=None,
    type=words.interval,
    help="Run again and again, so long apart (10s, 5m), until SIGTERM or Ctrl-C.",
)
@decode_options
@spark_options
@options.bootstrap
@options.output
def changelog(
    topic: str,
    target: str,
    kind: str | None,
    buckets: int | None,
    table_format: str | None,
    store_options: dict[str, str],
    start: str,
    end: str,
    group: str | None,
    on_null_key: str,
    skip_unreadable: bool,
    accept_loss: bool,
    override: str | None,
    reconcile: bool,
    on_bad_timestamp: str,
    dead_letter_topic: str | None,
    every_ms: int | None,
    master: str | None,
    conf: dict[str, str],
    name: str | None,
    bootstrap: str,
    form: str,
    **decoding: Any,
) -> None:
    """Keep one row of each key of TOPIC in the table in DIR.

    \b
    ottla lake changelog planes --to /lake/planes
    ottla lake changelog planes --to /lake/planes --format delta
    ottla lake changelog planes --to /lake/positions --kind history
    ottla lake changelog planes --to /lake/planes --every 10s
    ottla lake changelog shop.orders --to /lake/orders --key json --value debezium-json

    The row of a key is its latest record; a record with a null value deletes it, and so does an
    envelope of Debezium with op d. A history has a row of each record, with the time for which it
    held (valid_from, valid_to). Run it again and it applies only what came since. Killed at any
    step it neither loses nor repeats a change. Of two with --every the older one stops.
    """  # noqa: D301
    loads = import_lake()
    arguments = {
        "topic": topic,
        "target": target,
        "bootstrap": bootstrap,
        "kind": kind,
        "buckets": buckets,
        "start": start,
        "end": end,
        "group": group,
        "on_null_key": on_null_key,
        "skip_unreadable": skip_unreadable,
        "accept_loss": accept_loss,
        "on_bad_timestamp": on_bad_timestamp,
        "decode": declared(decoding),
        "dead_letter_topic": dead_letter_topic,
        "override": override,
        "reconcile": reconcile,
        "format": table_format,
        "store_options": store_options,
        "spark_settings": loads.SparkSettings(master, name, conf),
    }
    with ProgressLine(shown=form != "json", says_end=every_ms is None) as line:
        shown = _ShownRuns(topic, target, form, every_ms, line)
        done = loads.changelog(**arguments, **shown.arguments, every_ms=every_ms)
        if every_ms is None:
            shown.on_run(done)


def keep_pipeline(pipeline: Any, every_ms: int | None, form: str, given: dict[str, Any]) -> None:
    """Keep the changelog table of a pipeline, as `ottla lake follow` does.

    `given` are more arguments of `ottla.lake.changelog`.
    """
    from ottla.lake.pipeline import following  # noqa: PLC0415  # Arrow is an extra.

    end = {"end": pipeline.end} if every_ms is None else {}
    with ProgressLine(shown=form != "json", says_end=False) as line:
        shown = _ShownRuns(pipeline.topic, pipeline.table, form, every_ms, line)
        following.keep_pipeline(pipeline, every_ms=every_ms, **shown.arguments, **end, **given)


class _ShownRuns:
    """What people see of runs, and the signals that end them."""

    def __init__(
        self, topic: str, target: str, form: str, every_ms: int | None, line: ProgressLine
    ) -> None:
        self._topic = topic
        self._target = target
        self._form = form
        self._every_ms = every_ms
        self._line = line
        self._stop = threading.Event()

    @property
    def arguments(self) -> dict[str, Any]:
        """Those of `ottla.lake.changelog`."""
        return {
            "stop": self._stop,
            "on_run": self.on_run,
            "on_trouble": self._on_trouble,
            "on_recovery": self._on_recovery,
            "on_step": self._on_step,
            "on_progress": self._line.on_progress,
        }

    def on_run(self, done: Any) -> None:
        self._line.end()
        _show(self._topic, self._target, done, self._form)

    def _on_step(self, step: str) -> None:
        self._line.on_step(step)
        if step in ("following", "spark started") and self._every_ms is not None:
            # Each time: Spark sets handlers of its own when it starts.
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, lambda *_: self._stop.set())

    def _on_trouble(self, error: OttlaError) -> None:
        self._line.end()
        show_trouble(error)

    def _on_recovery(self, seconds: float) -> None:
        self._line.end()
        show_recovery(seconds)


def _show(topic: str, target: str, done: Any, form: str) -> None:
    total = done.manifest.total_rows if done.manifest else 0
    if form == "json":
        answer = {"topic": topic, "changes": done.rows, "rows": total, "seconds": done.seconds}
        show_one("json", {**answer, "ledgers": ledger_rows(done.ledgers), "unexplained": 0})
        return
    if not done.ledgers:
        click.echo(f"nothing new in {topic}; the table holds {counted(total, 'row')}")
        return
    show(form, ledger_rows(done.ledgers), LEDGER_COLUMNS)
    for line in skipped_lines(topic, done.skipped):
        click.secho(line, fg="yellow")
    for line in columns_changed(topic, done.manifest) + letters_line(target, done.ledgers):
        click.secho(line, fg="yellow")
    click.echo(
        f"{counted(done.rows, 'change')} applied in {done.seconds:.1f} s; "
        f"{counted(done.files, 'file')} written; the table holds {counted(total, 'row')}"
    )
