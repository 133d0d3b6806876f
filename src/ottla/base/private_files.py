"""Files and folders readable by their owner only, and checks for wider permissions.

Windows has no file modes: there nothing is restricted or reported, and a folder's own permissions
apply.
"""

import errno
import os
import stat
from pathlib import Path
from typing import Final

from ottla.base import system

HAS_MODES: Final = hasattr(os, "geteuid")

FILE_MODE: Final = 0o600
FOLDER_MODE: Final = 0o700
_GROUP_READS: Final = 0o040
_GROUP_AND_OTHERS: Final = 0o077
_OTHERS: Final = 0o007
_ROOT: Final = 0


def make_private_folder(path: str | os.PathLike[str]) -> None:
    """Make a folder for its owner only; an existing one is not changed. Raises OSError."""
    os.makedirs(path, FOLDER_MODE, exist_ok=True)


def write_private(path: Path, data: bytes, mode: int = FILE_MODE, *, durably: bool = False) -> None:
    """Write a file atomically, with no moment of partial content or wider permissions.

    With `durably` the file survives a power cut. Raises OSError.
    """
    new = path.with_name(f".{path.name}.new")
    new.unlink(missing_ok=True)
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
        if durably:
            file.flush()
            os.fsync(descriptor)
    new.replace(path)
    if durably:
        system.sync_folder(path.parent)


def narrow(path: str) -> int | None:
    """Restrict a file to its owner; return its former mode, None if it was private.

    A missing file is private. Raises PermissionError if the file belongs to another user.
    """
    mode = _mode(path)
    if mode is None or not mode & _GROUP_AND_OTHERS:
        return None
    os.chmod(path, FILE_MODE)
    return mode


def exposed_file(path: str) -> int | None:
    """Return the mode of a file with secrets if other users may read it, else None."""
    if not HAS_MODES:
        return None
    try:
        found = os.stat(path)
    except OSError:
        return None
    mode = stat.S_IMODE(found.st_mode)
    return mode if is_exposed(mode, found.st_uid, os.geteuid()) else None


def is_exposed(mode: int, owner: int, user: int) -> bool:
    """Return whether a file that `user` reads is open to others.

    A group may read a file that belongs to root: systems give a key to an unprivileged service that
    way.
    """
    meant = _GROUP_READS if owner == _ROOT != user else 0
    return bool(mode & _GROUP_AND_OTHERS & ~meant)


def exposed_folder(path: str) -> int | None:
    """Return a folder's mode if every user may enter, list or change it, else None.

    What its group may do is its administrator's decision.
    """
    mode = _mode(path)
    return None if mode is None or not mode & _OTHERS else mode


def whose(path: str) -> str:
    """Return a clause that names the present user and the owner of a path or its nearest parent.

    It ends the message of a denied access; it is empty if the system has no user ids.
    """
    if not HAS_MODES:
        return ""
    for place in (Path(path), *Path(path).parents):
        try:
            owner = os.stat(place).st_uid
        except OSError:
            continue
        return f" ({place} belongs to user {owner}, and this process is user {os.geteuid()})"
    return ""


def _mode(path: str) -> int | None:
    if not HAS_MODES:
        return None
    try:
        return stat.S_IMODE(os.stat(path).st_mode)
    except OSError:
        return None


# With these flags a FIFO without a writer opens at once, and no terminal becomes the controlling
# terminal of the broker.
_AT_ONCE: Final[int] = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)


def read_small(path: str, size_max: int) -> bytes:
    """Return the content of a regular file of at most `size_max` bytes.

    Other kinds of files are refused unread, because a FIFO or a device may have no end. Raises
    OSError, whose `strerror` has the reason.
    """
    descriptor = os.open(path, os.O_RDONLY | _AT_ONCE | system.OPEN_FLAGS)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file", path)
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            content = file.read(size_max + 1)
    finally:
        os.close(descriptor)
    if len(content) > size_max:
        raise OSError(errno.EFBIG, f"it has more than {size_max} bytes", path)
    return content
