"""Bounds of columns by the log of a table format, compared with those in the footers of files."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from ottla.lake.folder.file_check import NO_PARQUET
from ottla.lake.manifest import DataFile
from ottla.lake.stores.store import FileStore
from ottla.lake.tables.agreement import bounds_problems
from ottla.lake.tables.statistics import read_statistics


@dataclass(frozen=True, slots=True)
class LogBounds:
    """Least and greatest values of columns, by path, as the log of `kind` has them."""

    kind: str = ""
    files: Mapping[str, Mapping[str, tuple[int, int]]] = field(default_factory=dict)

    def of(self, path: str) -> "LogBounds":
        """Those of one file."""
        return LogBounds(self.kind, {path: self.files[path]}) if path in self.files else NO_BOUNDS

    def problems(self, store: FileStore, file: DataFile) -> list[str]:
        """Say where the log's bounds leave out values that the file has: its bytes are sound."""
        bounds = self.files.get(file.path)
        if not bounds:
            return []
        try:
            footer = read_statistics(store, file)
        except NO_PARQUET:
            return []  # What is wrong with the file itself is said where it is read.
        return bounds_problems(self.kind, file.path, bounds, footer)


NO_BOUNDS = LogBounds()
