"""The store in a folder of this machine, or of a file system that all machines share.

`put_if_absent` makes a hard link, which fails if the name exists. Names and contents are forced to
disk before a call returns.
"""

import errno
import os
import platform
import re
import stat
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, ClassVar

from ottla.base.errors import ErrorCode
from ottla.base.file_lock import is_free, try_lock
from ottla.base.system import sync_data, sync_folder
from ottla.lake.store.store import (
    PutUnknown,
    StoredFile,
    StoreWriter,
    is_fresh_hold,
    no_put_if_absent,
)

# The names of temporary files that a crash may leave.
_DRAFT = re.compile(r"\.[0-9a-f]{32}\.tmp")
_REMEDY = "choose a folder on a local or POSIX filesystem with hard links"


class _LocalWriter(StoreWriter):
    """A file that is written under its final name. A commit names it only when it is complete."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = path.open("wb")

    def write(self, content: bytes) -> int:
        return self._file.write(content)

    def tell(self) -> int:
        return self._file.tell()

    def sync_ahead(self) -> None:
        self._file.flush()
        sync_data(self._file.fileno())

    def finish(self, *, durable: bool = True) -> None:
        self.closed = True
        self._file.flush()
        if durable:
            os.fsync(self._file.fileno())
        self._file.close()
        if durable:
            sync_folder(self._path.parent)

    def discard(self) -> None:
        self.closed = True
        with suppress(OSError):
            self._file.close()
        with suppress(OSError):
            self._path.unlink(missing_ok=True)


@dataclass(frozen=True, slots=True)
class LocalStore:
    """The folder `root`, an absolute path. Files are in it and in folders directly below."""

    root: Path
    lists_all_at_once: ClassVar = True

    @property
    def url(self) -> str:
        return str(self.root)

    def address(self, path: str) -> str:
        return str(self.root / path)

    def prepare(self, folders: Iterable[str]) -> None:
        made = [self.root / folder for folder in folders]
        for folder in made:
            folder.mkdir(parents=True, exist_ok=True)
        _require_exclusive_links(made[0], self.url)
        for folder in dict.fromkeys((self.root.parent, self.root, *(one.parent for one in made))):
            sync_folder(folder)

    def top(self) -> list[str]:
        return self.names("")

    def names(self, folder: str, after: str = "") -> list[str]:
        try:
            found = os.listdir(self.root / folder)
        except FileNotFoundError:
            return []
        return [name for name in found if name > after] if after else found

    def files(self, folder: str) -> Iterator[StoredFile]:
        for place, _, names in os.walk(self.root / folder):
            for name in names:
                path = Path(place, name)
                if _DRAFT.fullmatch(name):
                    continue
                with suppress(FileNotFoundError):  # Another process removed it meanwhile.
                    found = path.stat()
                    within = path.relative_to(self.root).as_posix()
                    yield StoredFile(within, found.st_size, found.st_mtime_ns // 1_000_000)

    def create(self, path: str) -> StoreWriter:
        target = self.root / path
        # Do not create the folder of data: if it is missing, this worker may not have the target
        # mounted. Folders in it, and the table's folders `_…`, are created if their parent exists.
        is_below = path.count("/") > 1
        if (path.startswith("_") or is_below) and not target.parent.is_dir():
            target.parent.mkdir(exist_ok=True)
            sync_folder(target.parent.parent)
        return _LocalWriter(target)

    def put_if_absent(self, path: str, content: bytes) -> bool:
        target = self.root / path
        draft = _draft_for(target)
        try:
            _write_synced(draft, content)
            if not _link(draft, target):
                return target.read_bytes() == content
            try:
                sync_folder(target.parent)
            except OSError as error:
                raise PutUnknown(
                    ErrorCode.KAFKA_STORAGE_ERROR,
                    f"{target} is written, and could not be forced to the disk ({error}): repair "
                    "the disk, then run this again",
                ) from error
        finally:
            with suppress(OSError):
                draft.unlink(missing_ok=True)
        return True

    def replace(self, path: str, content: bytes) -> None:
        target = self.root / path
        draft = _draft_for(target)
        try:
            _write_synced(draft, content)
            os.replace(draft, target)
        finally:
            draft.unlink(missing_ok=True)
        sync_folder(target.parent)

    def read(self, path: str) -> bytes:
        return (self.root / path).read_bytes()

    def open(self, path: str) -> BinaryIO:
        place = self.root / path
        # Refuse devices and pipes, which may have no end.
        if not stat.S_ISREG(place.stat().st_mode):
            raise OSError(errno.EINVAL, "this is no regular file", str(place))
        return place.open("rb")

    def size(self, path: str) -> int:
        return (self.root / path).stat().st_size

    def remove(self, path: str) -> None:
        (self.root / path).unlink(missing_ok=True)

    @contextmanager
    def hold(self, path: str) -> Iterator[None]:
        marker = self.root / path
        marker.parent.mkdir(parents=True, exist_ok=True)
        draft = marker.with_name(f".{marker.name}.tmp")
        try:
            with draft.open("wb", buffering=0) as file:
                file.write(_machine())
                with suppress(OSError):  # If there are no locks, the marker's age decides.
                    try_lock(file.fileno())
                # Give the marker its final name only now that it is locked.
                os.replace(draft, marker)
                yield
        finally:
            marker.unlink(missing_ok=True)
            draft.unlink(missing_ok=True)

    def is_held(self, path: str) -> bool:
        marker = self.root / path
        try:
            with marker.open("rb") as file:
                if not is_free(file.fileno()):
                    return True
                if file.read() == _machine():
                    return False
        except FileNotFoundError:
            return False
        except OSError:
            pass  # If there are no locks, or no permission, the marker's age decides.
        try:
            return is_fresh_hold(marker.stat().st_mtime_ns // 1_000_000)
        except OSError:
            return True


def _draft_for(target: Path) -> Path:
    """Return a temporary name in the folder of `target`, which is created if needed.

    The parent of the folder must exist, so that a removed table is not created again.
    """
    folder = target.parent
    if not folder.is_dir():
        folder.mkdir(exist_ok=True)
        sync_folder(folder.parent)
    return folder / f".{uuid.uuid4().hex}.tmp"


def _link(draft: Path, target: Path) -> bool:
    """Give the draft its final name; return False if another file has it.

    If it raises OSError, the name was not given.
    """
    try:
        os.link(draft, target)
    except OSError as error:
        # On a network file system, the link may have succeeded although the answer was lost.
        if draft.stat().st_nlink > 1:
            return True
        if isinstance(error, FileExistsError):
            return False
        raise
    return True


def _write_synced(path: Path, content: bytes) -> None:
    """Write a file and force it to disk. After a crash, it may be incomplete."""
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _require_exclusive_links(folder: Path, place: str) -> None:
    """Raise OttlaError unless a hard link to an existing name fails, as commits rely on it."""
    source = folder / f".probe-{uuid.uuid4().hex}"
    target = source.with_suffix(".taken")
    source.touch()
    try:
        os.link(source, target)
        os.link(source, target)
    except FileExistsError:
        return
    except OSError as error:
        raise no_put_if_absent(place, str(error), _REMEDY) from error
    finally:
        source.unlink()
        target.unlink(missing_ok=True)
    raise no_put_if_absent(place, "a taken name was given away again", _REMEDY)


_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def _machine() -> bytes:
    """Return an id of this machine since its boot. Its processes see each other's locks."""
    with suppress(OSError):
        return _BOOT_ID.read_bytes().strip()
    return platform.node().encode()
