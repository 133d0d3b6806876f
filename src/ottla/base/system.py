"""Calls that not every operating system has, with replacements if they are missing.

Linux has them all. macOS lacks fdatasync (and its fsync stops at the drive's cache). Windows lacks
positioned reads and writes, gathered writes, and folders that can be opened. The choice is made
once, at import: a name here is the system's call if there is one, else the replacement.
"""

import contextlib
import mmap
import os
import signal
import threading
from collections.abc import Callable, Sequence
from functools import cache
from typing import Final

try:
    import resource
except ImportError:
    _HAS_LIMITS = False
else:
    _HAS_LIMITS = True

try:
    import fcntl
except ImportError:
    _FULL_SYNC: int | None = None
else:
    _FULL_SYNC = getattr(fcntl, "F_FULLFSYNC", None)

Buffer = bytes | bytearray | memoryview

# Timers that send SIGALRM; Windows has none.
HAS_INTERVAL_TIMER: Final[bool] = hasattr(signal, "setitimer")

# For os.open: no child inherits the file, and Windows does not translate line ends.
OPEN_FLAGS: Final[int] = (
    getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOINHERIT", 0) | getattr(os, "O_BINARY", 0)
)

# Held from seek to read or write, on systems where all users of a descriptor share its position.
_position = threading.Lock()


def seek_and_read(descriptor: int, size: int, position: int) -> bytes:
    """Replace `os.pread`."""
    with _position:
        os.lseek(descriptor, position, os.SEEK_SET)
        return os.read(descriptor, size)


def seek_and_write(descriptor: int, buffer: Buffer, position: int) -> int:
    """Replace `os.pwrite`."""
    with _position:
        os.lseek(descriptor, position, os.SEEK_SET)
        return os.write(descriptor, buffer)


def write_alone(descriptor: int, buffer: Buffer) -> int:
    """Replace `os.write` on systems where `seek_and_read` moves the same file's position."""
    with _position:
        return os.write(descriptor, buffer)


def read_and_copy(descriptor: int, buffers: Sequence[bytearray | memoryview], position: int) -> int:
    """Replace `os.preadv` for one buffer."""
    (buffer,) = buffers
    found = pread(descriptor, len(buffer), position)
    buffer[: len(found)] = found
    return len(found)


def write_one_by_one(descriptor: int, buffers: Sequence[Buffer]) -> int:
    """Replace `os.writev`; like that, it may write only a part."""
    written = 0
    for buffer in buffers:
        count = write(descriptor, buffer)
        written += count
        if count != len(buffer):
            break
    return written


def full_sync(descriptor: int) -> None:
    """Replace `os.fdatasync` on macOS, where fsync leaves data in the drive's cache."""
    assert _FULL_SYNC is not None
    try:
        fcntl.fcntl(descriptor, _FULL_SYNC)
    except OSError:
        # Network file systems do not support it.
        os.fsync(descriptor)


def _choose_sync() -> Callable[[int], None]:
    if hasattr(os, "fdatasync"):
        return os.fdatasync
    return full_sync if _FULL_SYNC is not None else os.fsync


_HAS_PREAD: Final = hasattr(os, "pread")
sync_data: Final[Callable[[int], None]] = _choose_sync()
pread: Final[Callable[[int, int, int], bytes]] = os.pread if _HAS_PREAD else seek_and_read
pwrite: Final[Callable[[int, Buffer, int], int]] = os.pwrite if _HAS_PREAD else seek_and_write
write: Final[Callable[[int, Buffer], int]] = os.write if _HAS_PREAD else write_alone
preadv: Final[Callable[[int, Sequence[bytearray | memoryview], int], int]] = (
    os.preadv if hasattr(os, "preadv") else read_and_copy
)
writev: Final[Callable[[int, Sequence[Buffer]], int]] = (
    os.writev if hasattr(os, "writev") else write_one_by_one
)
# A flag of `os.preadv`: read only what is in the page cache. None if it is not supported.
NO_WAIT: Final[int | None] = getattr(os, "RWF_NOWAIT", None)


def sync_folder(path: str | os.PathLike[str]) -> None:
    """Sync a folder, so that names of files are on the disk.

    Windows cannot open folders; there the file system's journal keeps renames in order.
    """
    if not hasattr(os, "O_DIRECTORY"):
        return
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | OPEN_FLAGS)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def disk_space(path: str) -> tuple[int, int]:
    """Return the free and all bytes of the disk of `path`. Raises OSError."""
    if hasattr(os, "statvfs"):
        found = os.statvfs(path)
        return found.f_bavail * found.f_frsize, found.f_blocks * found.f_frsize
    # It imports compressors, which take half a megabyte of memory; only Windows needs it.
    import shutil  # noqa: PLC0415

    usage = shutil.disk_usage(path)
    return usage.free, usage.total


def anonymous_memory(size: int) -> mmap.mmap:
    """Return memory pages private to this process, initially zero."""
    if hasattr(mmap, "MAP_PRIVATE"):
        return mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    return mmap.mmap(-1, size)


def lower_priority(steps: int) -> None:
    """Lower this process's priority, if the system supports that."""
    if hasattr(os, "nice"):
        os.nice(steps)


# Used if the system reports no limit of open files.
_DESCRIPTORS_MAX: Final = 1 << 20


def descriptors_max() -> int:
    """Return the number of files and sockets that this process may open."""
    if not _HAS_LIMITS:
        return _DESCRIPTORS_MAX
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _DESCRIPTORS_MAX if soft == resource.RLIM_INFINITY else soft


def raise_descriptors_max() -> None:
    """Raise the limit of open files to the administrator's maximum; shells set a lower one."""
    if not _HAS_LIMITS:
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = _DESCRIPTORS_MAX if hard == resource.RLIM_INFINITY else min(hard, _DESCRIPTORS_MAX)
    if soft not in (resource.RLIM_INFINITY, most) and soft < most:
        with contextlib.suppress(OSError, ValueError):
            # macOS reports "unlimited" and refuses it.
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def usable_cores() -> int:
    """Return how many cores this process may use, by its affinity and its container's quota."""
    cores = os.cpu_count() or 1
    if hasattr(os, "sched_getaffinity"):
        cores = len(os.sched_getaffinity(0))
    with contextlib.suppress(OSError, ValueError), open("/sys/fs/cgroup/cpu.max") as file:
        quota, period = map(int, file.read().split())
        cores = min(cores, max(1, -(-quota // period)))
    return cores


def broker_process(broker_id: int) -> str:
    """Return the process name of a broker of `ottla start --brokers`."""
    return f"ottla broker {broker_id}"[:15]


def name_process(name: str) -> None:
    """Set the name that `ps`, `top` and `pgrep` show, up to 15 letters; on Linux only."""
    with contextlib.suppress(OSError), open("/proc/self/comm", "w", encoding="utf-8") as file:
        file.write(name)


def process_name(pid: int) -> str | None:
    """Return the name of a process, as set by `name_process`; None if it cannot be read."""
    try:
        with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as file:
            return file.read().rstrip("\n")
    except OSError:
        return None


# mallopt's parameter, and a threshold: buffers of TLS connections may have 256 KiB each.
_M_MMAP_THRESHOLD: Final = -3
_APART_BYTES: Final = 192 << 10


def keep_large_buffers_apart() -> None:
    """Make glibc's malloc map large buffers separately.

    Otherwise it places them among small ones, and most of a freed buffer stays in memory, more with
    each TLS connection that sent much.
    """
    import ctypes  # noqa: PLC0415  # Few brokers need it.

    with contextlib.suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, _APART_BYTES)


# mallopt's parameter; the memory to keep, and glibc's limit of the largest buffer kept.
_M_TRIM_THRESHOLD: Final = -1
_KEPT_BYTES: Final = 64 << 20
_KEPT_BUFFER_BYTES: Final = 32 << 20


@cache
def keep_freed_memory() -> None:
    """Make glibc's malloc keep up to 64 MiB of freed memory.

    By default it returns a buffer of some megabytes to the system as soon as it is freed, and the
    kernel must map and clear the next buffer's pages again. That is a sixth of the CPU time of a
    process that does nothing but fill one buffer after another.
    """
    import ctypes  # noqa: PLC0415  # No broker needs it.

    with contextlib.suppress(AttributeError, OSError, TypeError):
        libc = ctypes.CDLL(None)
        libc.mallopt(_M_MMAP_THRESHOLD, _KEPT_BUFFER_BYTES)
        libc.mallopt(_M_TRIM_THRESHOLD, _KEPT_BYTES)


def give_memory_back() -> None:
    """Return freed memory to the system, if malloc is glibc's.

    malloc places even a large buffer into freed memory if it fits. After many TLS connections have
    ended, the buffers of new ones take up that memory, and small objects get new memory: 45 MiB
    more for each 5,000 connections that came and went. After this call freed memory has no pages,
    so a buffer in it costs nothing until it is used. The call takes 2 to 6 milliseconds.
    """
    import ctypes  # noqa: PLC0415  # Few brokers need it.

    with contextlib.suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)
