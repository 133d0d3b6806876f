"""Makes this process look like another system's: `like(NAME)`, before ottla is imported.

It takes away what such a system lacks. What only it has (its own file locks, a full sync) is given
by a stand-in that keeps the law of the real one.
"""

import asyncio
import builtins
import ctypes
import fcntl
import io
import mmap
import os
import shutil
import signal
import socket
import sqlite3
import struct
import subprocess
import sys
import tempfile
import types

import click

# Loaded while the process is still itself: they look at the system when they are imported.
LOADED = (asyncio, click, ctypes, sqlite3, subprocess, tempfile)

NOT_ON_MACOS = (
    "fdatasync posix_fadvise posix_fallocate RWF_NOWAIT RWF_HIPRI pidfd_open eventfd memfd_create"
    " sched_getaffinity sched_setaffinity splice copy_file_range getrandom"
)
NOT_ON_WINDOWS = (
    "pread pwrite preadv pwritev readv writev sendfile O_DIRECTORY O_CLOEXEC O_NONBLOCK"
    " O_NOFOLLOW statvfs fstatvfs fork forkpty nice getuid geteuid getgid getpgid killpg setsid"
    " sysconf getloadavg uname wait waitpid WNOHANG fchmod fchown chown sync mkfifo"
    " sched_yield register_at_fork set_blocking getppid"
)
UNIX_MODULES = ("fcntl", "resource", "pwd", "grp", "termios", "tty", "pty", "posix", "uvloop")

SYNCED: list[int] = []
_FULL_SYNC = 51


def like(name: str) -> None:
    """`macos`, `windows`, or `bare`: Windows without file locks."""
    _hide_proc()
    if name == "macos":
        _remove(os, NOT_ON_MACOS)
        sys.platform = "darwin"
        _give_full_sync()
        return
    statvfs = os.statvfs
    shutil.disk_usage = lambda path: _usage(statvfs(path))  # type: ignore[assignment,misc]
    locking = _byte_locks()
    _remove(os, NOT_ON_MACOS)
    _remove(os, NOT_ON_WINDOWS)
    _remove(mmap, "MAP_PRIVATE MAP_ANONYMOUS MAP_ANON MAP_SHARED")
    _remove(signal, "SIGKILL SIGHUP SIGUSR1 SIGPIPE SIGSTOP")
    _remove(socket, "SO_REUSEPORT TCP_USER_TIMEOUT")
    for module in UNIX_MODULES:
        sys.modules[module] = None  # type: ignore[assignment]
    if name == "windows":
        sys.modules["msvcrt"] = locking

    def refuse(*_: object) -> None:
        raise NotImplementedError

    asyncio.SelectorEventLoop.add_signal_handler = refuse  # type: ignore[method-assign]
    sys.platform = "win32"


def _remove(module: types.ModuleType, names: str) -> None:
    for name in names.split():
        if hasattr(module, name):
            delattr(module, name)


def _hide_proc() -> None:
    really = builtins.open

    def open_(file, *arguments, **named):
        if str(file).startswith("/proc/"):
            raise FileNotFoundError(file)
        return really(file, *arguments, **named)

    builtins.open = io.open = open_


def _give_full_sync() -> None:
    really = fcntl.fcntl

    def fcntl_(descriptor, command, argument=0):
        if command != _FULL_SYNC:
            return really(descriptor, command, argument)
        SYNCED.append(descriptor)
        os.fsync(descriptor)
        return 0

    fcntl.fcntl = fcntl_
    fcntl.F_FULLFSYNC = _FULL_SYNC  # type: ignore[attr-defined]


def _usage(stat: os.statvfs_result) -> object:
    size, free = stat.f_blocks * stat.f_frsize, stat.f_bavail * stat.f_frsize
    return types.SimpleNamespace(total=size, used=size - free, free=free)


def _byte_locks() -> types.ModuleType:
    """Windows' `msvcrt.locking`: a byte at the descriptor's position, free when it is closed."""
    module = types.ModuleType("msvcrt")
    module.LK_NBLCK, module.LK_UNLCK = 2, 0  # type: ignore[attr-defined]
    get, unlocked = fcntl.F_OFD_SETLK, fcntl.F_UNLCK  # type: ignore[attr-defined]

    def locking(descriptor: int, mode: int, size: int) -> None:
        kind = fcntl_write_lock if mode == module.LK_NBLCK else unlocked
        start = os.lseek(descriptor, 0, os.SEEK_CUR)
        lock = struct.pack("hhqqi", kind, os.SEEK_SET, start, size, 0)
        try:
            really(descriptor, get, lock)
        except BlockingIOError as error:
            raise PermissionError(13, "the byte is locked") from error

    really, fcntl_write_lock = fcntl.fcntl, fcntl.F_WRLCK
    module.locking = locking  # type: ignore[attr-defined]
    return module
