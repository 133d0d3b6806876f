"""A progress bar on standard error, if that is a terminal."""

import sys
from time import monotonic
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

# Shorter operations show no bar.
_PATIENCE_S = 0.4


class Bar:
    """Counts bytes read and records delivered; shows them on a terminal after a short delay."""

    def __init__(self, title: str, total_bytes: int | None, *, shown: bool = True) -> None:
        self.read_bytes = 0
        self._title = title
        self._total = total_bytes
        self._started_s = monotonic()
        self._wanted = shown and sys.stderr.isatty()
        self._bar: Progress | None = None
        self._task: TaskID | None = None

    def on_read(self, count: int) -> None:
        """Count bytes read."""
        self.read_bytes += count

    def update(self, records: int) -> None:
        """Set the number of delivered records."""
        if not self._wanted:
            return
        elapsed_s = monotonic() - self._started_s
        if self._bar is None:
            if elapsed_s < _PATIENCE_S:
                return
            self._bar = self._open()
        assert self._task is not None
        self._bar.update(
            self._task,
            completed=self.read_bytes,
            records=f"{records:,} records",
            rate=f"{records / elapsed_s:,.0f}/s",
        )

    def close(self) -> None:
        """Remove the bar."""
        if self._bar is not None:
            self._bar.stop()

    def _open(self) -> "Progress":
        # Imported only if the bar is shown, because the import is slow.
        from rich.console import Console  # noqa: PLC0415
        from rich.progress import (  # noqa: PLC0415
            BarColumn,
            DownloadColumn,
            Progress,
            TextColumn,
            TimeRemainingColumn,
        )

        bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            DownloadColumn(),
            TextColumn("{task.fields[records]}"),
            TextColumn("{task.fields[rate]}"),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            transient=True,
        )
        self._task = bar.add_task(self._title, total=self._total, records="", rate="")
        bar.start()
        return bar
