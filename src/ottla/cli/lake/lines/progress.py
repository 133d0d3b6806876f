"""Shows a load's progress on standard error: a self-updating line, or one every ten seconds."""

import shutil
import sys
from time import monotonic
from typing import Any, Self

import click

_STEPS = {
    "planned": "starting",
    "spark started": "loading",
    "changes reduced": "merging",
    "files written": "committing",
}
# The time between two lines if standard error is not a terminal but a log or a pipe.
_INTERVAL_S = 10.0


class ProgressLine:
    """Shows the steps and the progress of a load, or of several in sequence.

    As a context it leaves no line, so that an error begins on a clean one.
    """

    def __init__(self, *, shown: bool = True, says_end: bool = True) -> None:
        """Start without a line.

        If standard error is not a terminal, `says_end` adds a line at the end of a load.
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
        if self._shown and self._is_terminal and step in _STEPS:
            self._renew(f"{_STEPS[step]} …")

    def on_progress(self, progress: Any) -> None:
        """Show a load's progress, an `ottla.lake.job.progress.Progress`."""
        if not self._shown:
            return
        if self._is_terminal:
            self._renew(progress.line())
            return
        ends = progress.tasks_done == progress.tasks
        if not self._ended and ((ends and self._says_end) or monotonic() >= self._next_s):
            self._ended = ends and self._says_end
            self._next_s = monotonic() + _INTERVAL_S
            click.echo(progress.line(), err=True)

    def end(self) -> None:
        """Clear the line."""
        if self._shown and self._is_terminal:
            click.echo("\r\x1b[K", nl=False, err=True)

    def _renew(self, line: str) -> None:
        width = shutil.get_terminal_size().columns
        click.echo(f"\r\x1b[K{line[: width - 1]}", nl=False, err=True)
