"""`ottla lake changelog`: keeps one row for each key of a topic up to date."""

import signal
import threading
from typing import Any

import click

from ottla.base.errors import OttlaError
from ottla.base.quantities import counted
from ottla.cli.common import options
from ottla.cli.common.completion import topics
from ottla.cli.lake.declared import declares
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
from ottla.cli.text.output import show, show_one


@click.command(cls=declares("ChangelogOptions"))
@click.argument("topic", shell_complete=topics)
@click.option("--to", "target", required=True, metavar="DIR", help="The table's folder.")
@options.bootstrap
@options.output
def changelog(
    topic: str,
    target: str,
    bootstrap: str,
    form: str,
    **given: Any,
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
    every_ms = given["every"]
    with ProgressLine(shown=form != "json", says_end=every_ms is None) as line:
        shown = _ShownRuns(topic, target, form, every_ms, line)
        done = loads.changelog(topic, target, bootstrap=bootstrap, watch=shown.watch, **given)
        if every_ms is None:
            shown.on_run(done)


def keep_pipeline(pipeline: Any, every_ms: int | None, form: str, given: dict[str, Any]) -> None:
    """Update the changelog table of a pipeline repeatedly, as `ottla lake follow` does.

    `given` are more arguments of `ottla.lake.changelog`.
    """
    from ottla.lake.edges import pipeline_follow as following  # noqa: PLC0415  # Arrow is an extra.

    with ProgressLine(shown=form != "json", says_end=False) as line:
        shown = _ShownRuns(pipeline.topic, pipeline.table, form, every_ms, line)
        following.keep_pipeline(pipeline, every=every_ms, watch=shown.watch, **given)


class _ShownRuns:
    """Shows runs to people, and ends them on signals."""

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
    def watch(self) -> Any:
        """Return the `ottla.lake.Observer` of the runs."""
        return import_lake().Observer(
            on_step=self._on_step,
            on_progress=self._line.on_progress,
            on_run=self.on_run,
            on_trouble=self._on_trouble,
            on_recovery=self._on_recovery,
            stop=self._stop,
        )

    def on_run(self, done: Any) -> None:
        self._line.end()
        _show(self._topic, self._target, done, self._form)

    def _on_step(self, step: str) -> None:
        self._line.on_step(step)
        if step in ("following", "spark started") and self._every_ms is not None:
            # Set before each run: Spark sets handlers of its own when it starts.
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
