"""Compares the bounds of columns in a table format's log with those in the files' footers."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from ottla.lake.model.manifest import DataFile
from ottla.lake.store.store import FileStore
from ottla.lake.tables.file_check import NO_PARQUET
from ottla.lake.tables.format_log import bounds_problems
from ottla.lake.tables.statistics import read_statistics


@dataclass(frozen=True, slots=True)
class LogBounds:
    """Lowest and highest values of columns, by path, from the log of `kind`."""

    kind: str = ""
    files: Mapping[str, Mapping[str, tuple[int, int]]] = field(default_factory=dict)

    def of(self, path: str) -> "LogBounds":
        """Return the bounds of one file."""
        return LogBounds(self.kind, {path: self.files[path]}) if path in self.files else NO_BOUNDS

    def problems(self, store: FileStore, file: DataFile) -> list[str]:
        """Return where the log's bounds exclude values of the file, whose bytes are sound."""
        bounds = self.files.get(file.path)
        if not bounds:
            return []
        try:
            footer = read_statistics(store, file)
        except NO_PARQUET:
            return []  # Problems of the file itself are reported where it is read.
        return bounds_problems(self.kind, file.path, bounds, footer)


NO_BOUNDS = LogBounds()
