"""Lets pyiceberg write the metadata of a local table so that each file is forced to disk.

The catalog then never names a file that a power cut has left empty.
"""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self

from pyiceberg.io import InputFile, OutputFile, OutputStream
from pyiceberg.io.pyarrow import PyArrowFileIO

from ottla.base.system import sync_folder


class _Written(threading.local):
    """The paths that this thread writes, while it collects them."""

    paths: list[Path] | None = None


_written = _Written()


@contextmanager
def paths_written() -> Iterator[list[Path]]:
    """Collect the paths of files that this thread begins to write within the context."""
    before, _written.paths = _written.paths, []
    try:
        yield _written.paths
    finally:
        _written.paths = before


class _SyncedStream:
    """An output stream of pyiceberg. The file is complete and durable after closing, or absent."""

    def __init__(self, path: Path, file: BinaryIO) -> None:
        self._path = path
        self._file = file

    def write(self, content: bytes) -> int:
        with self._removed_on_failure():
            return self._file.write(content)

    def close(self) -> None:
        if self._file.closed:
            return
        with self._removed_on_failure():
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()
            sync_folder(self._path.parent)

    @contextmanager
    def _removed_on_failure(self) -> Iterator[None]:
        """Remove a partly written file on failure; nothing would name or remove it later."""
        try:
            yield
        except OSError:
            self._path.unlink(missing_ok=True)
            with suppress(OSError):
                self._file.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class _SyncedFile(OutputFile):  # type: ignore[misc]
    def __init__(self, location: str, path: Path, io: "SyncedFileIO") -> None:
        super().__init__(location)
        self._path = path
        self._io = io

    def __len__(self) -> int:
        return self._path.stat().st_size

    def exists(self) -> bool:
        return self._path.exists()

    def to_input_file(self) -> InputFile:
        return self._io.new_input(self.location)

    def create(self, overwrite: bool = False) -> OutputStream:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._io.written.append(self._path)
        if _written.paths is not None:
            _written.paths.append(self._path)
        return _SyncedStream(self._path, self._path.open("wb" if overwrite else "xb"))


class SyncedFileIO(PyArrowFileIO):  # type: ignore[misc]
    """Local files, opened by pyiceberg, which creates this class by name (`py-io-impl`).

    `written` has the paths of all files that were begun with it.
    """

    def __init__(self, properties: Any = None) -> None:
        super().__init__(properties or {})
        self.written: list[Path] = []

    def new_output(self, location: str) -> Any:
        _, _, path = self.parse_location(location, self.properties)
        return _SyncedFile(location, Path(path), self)

    def delete(self, location: Any) -> None:
        """Delete a file; a missing file is no error, as in object stores.

        Another writer, an expiry or a full disk may have removed it first. pyiceberg would warn of
        each on standard error although nothing is wrong.
        """
        with suppress(FileNotFoundError):
            super().delete(location)
