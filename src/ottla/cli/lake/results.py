"""Shows progress of the lake's commands on standard error, and prints ledgers and results."""

import shutil
import signal
import sys
import threading
from collections.abc import Callable, Iterable
from dataclasses import asdict
from time import monotonic
from typing import Any, Self

import click

from ottla.base.errors import OttlaError
from ottla.base.quantities import counted, iso
from ottla.cli.lake.arguments import import_lake
from ottla.cli.text.output import show
from ottla.ledger.partition import PartitionLedger, Unreadable

LEDGER_COLUMNS = [
    "partition",
    "start",
    "end",
    "loaded",
    "control",
    "aborted",
    "compacted",
    "deleted",
    "unreadable",
    "absent",
    "dead_letters",
    "keyless",
    "unexplained",
]
_STEPS = {
    "planned": "starting",
    "spark started": "loading",
    "changes reduced": "merging",
    "files written": "committing",
}
# The time between two lines if standard error is not a terminal but, for example, a log.
_INTERVAL_S = 10.0


def show_yellow(lines: Iterable[str], *, err: bool = False) -> None:
    """Show lines that deserve attention but are not errors."""
    for line in lines:
        click.secho(line, fg="yellow", err=err)


def skipped_lines(topic: str, skipped: Iterable[Unreadable]) -> list[str]:
    """Return a line for each partition with unreadable offsets. Requires `import_lake`."""
    from ottla.lake.source import ledgers  # noqa: PLC0415  # Arrow is an extra.

    return ledgers.skipped_lines(topic, skipped)


def ledger_rows(ledgers: Iterable[PartitionLedger]) -> list[dict[str, Any]]:
    """Return a row for each partition. Its `remainder` must be 0."""
    return [{**asdict(ledger), "unexplained": ledger.unexplained} for ledger in ledgers]


def show_ledgers(ledgers: Iterable[PartitionLedger], **options: str) -> None:
    """Show a table with a row for each ledger."""
    show("table", ledger_rows(ledgers), LEDGER_COLUMNS, **options)


def show_result(topic: str, target: str, done: Any, summary: str) -> None:
    """Show the result of a load or changelog run; `summary` says in words what it did."""
    manifest = done.manifest
    holds = f"the table holds {counted(manifest.total_rows if manifest else 0, 'row')}"
    show_yellow(done.held_back)
    if not done.ledgers:
        click.echo(f"nothing new in {topic}; {holds}")
        return
    show_ledgers(done.ledgers)
    show_yellow(skipped_lines(topic, done.skipped))
    for change in manifest.schema_changes:
        places = ", ".join(f"{topic}-{p} offset {o}" for p, o in sorted(change.offsets.items()))
        click.echo(f"columns changed: {change.what}, from {places}")
    show_yellow(_remarks(topic, target, done))
    click.echo(f"{summary}; {holds}, hash {manifest.total_hash}")
    events = manifest.events
    if events is not None and events.watermark_ms is not None:
        click.echo(f"all before {iso(events.watermark_ms)} is in")


def _remarks(topic: str, target: str, done: Any) -> Iterable[str]:
    """Yield remarks about records that were not simply loaded."""
    dead = sum(ledger.dead_letters for ledger in done.ledgers)
    if dead:
        yield f"{counted(dead, 'dead letter')}: `ottla dlq list {target}` shows them"
    events = done.manifest.events
    if events is not None and events.late:
        late = counted(sum(events.late.values()), "row")
        yield f"{late} came late, behind the watermark of the last load"
    for partition, count in done.manifest.accepted_loss.items():
        yield f"{topic}-{partition}: {counted(count, 'offset')} lost: deleted before the load"


class ProgressLine:
    """Shows the steps and the progress of one load, or of several loads in sequence.

    On a terminal it is a line that updates itself; elsewhere it prints a line every ten seconds. As
    a context manager it removes the line at the end, so that an error begins on an empty line.
    """

    def __init__(self, *, shown: bool = True, says_end: bool = True) -> None:
        """Begin without showing a line.

        If standard error is not a terminal, `says_end` prints a line at the end of a load.
        """
        self._shown = shown
        self._says_end = says_end
        self._is_terminal = sys.stderr.isatty()
        self._next_s = monotonic() + _INTERVAL_S
        self._ended = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def on_step(self, step: str) -> None:
        """Show that a step is complete and the next one begins."""
        if step in _STEPS:
            self.renew(f"{_STEPS[step]} …")

    def on_progress(self, progress: Any) -> None:
        """Show a load's progress, an `ottla.lake.job.progress.Progress`."""
        if not self._shown:
            return
        if self._is_terminal:
            self.renew(progress.line())
            return
        ends = progress.tasks_done == progress.tasks
        if not self._ended and ((ends and self._says_end) or monotonic() >= self._next_s):
            self._ended = ends and self._says_end
            self._next_s = monotonic() + _INTERVAL_S
            click.echo(progress.line(), err=True)

    def renew(self, line: str) -> None:
        """Replace the line on the terminal."""
        if self._shown and self._is_terminal:
            width = shutil.get_terminal_size().columns
            click.echo(f"\r\x1b[K{line[: width - 1]}", nl=False, err=True)

    def end(self) -> None:
        """Remove the line."""
        if self._shown and self._is_terminal:
            click.echo("\r\x1b[K", nl=False, err=True)


class RepeatedRun:
    """Shows the commits of `ottla lake follow` or `ottla lake changelog`.

    If the command repeats its run, SIGTERM and Ctrl-C end it after the current commit.
    """

    def __init__(
        self,
        line: ProgressLine,
        on_done: Callable[[Any], None],
        on_start: Callable[[], None] = lambda: None,
    ) -> None:
        """`on_start` is called when following begins, `on_done` after each commit or run."""
        self._line = line
        self._on_done = on_done
        self._on_start = on_start
        self._repeats = False
        self._stop = threading.Event()

    @property
    def watch(self) -> Any:
        """Return the `ottla.lake.Observer` of the run."""
        return import_lake().Observer(
            on_step=self._on_step,
            on_progress=self._line.on_progress,
            on_commit=self._done,
            on_run=self._done,
            on_error=self._on_error,
            on_recovery=self._on_recovery,
            stop=self._stop,
        )

    def _on_step(self, step: str) -> None:
        if step == "following":
            self._repeats = True
            self._line.end()
            self._on_start()
        # A follow mostly looks for new records; those steps are not shown.
        if not self._repeats or step in ("changes reduced", "files written"):
            self._line.on_step(step)
        if self._repeats and step in ("following", "spark started"):
            # Set the handlers again once Spark has started, because it sets its own.
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, lambda *_: self._stop.set())

    def _done(self, result: Any) -> None:
        self._line.end()
        self._on_done(result)

    def _on_error(self, error: OttlaError) -> None:
        from ottla.lake.source.cluster import is_outage  # noqa: PLC0415  # Arrow is an extra.

        self._line.end()
        text = f"{error.message}; it is tried again"
        if is_outage(error):
            text = f"waiting for brokers: {error.message}; it goes on by itself"
        show_yellow([text], err=True)

    def _on_recovery(self, seconds: float) -> None:
        self._line.end()
        waited = f"going on: the brokers answer again after {seconds:.0f} s"
        show_yellow([waited], err=True)
