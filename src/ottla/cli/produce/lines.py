"""Reads the lines of files or standard input without blocking the loop; yields lists of lines."""

import asyncio
import os
import stat
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from pathlib import Path

_READ_BYTES = 1 << 20
STDIN = 0


async def lines_of(
    paths: Sequence[Path], on_read: Callable[[int], None]
) -> AsyncGenerator[list[bytes]]:
    """Yield the lines of all files, one after the other; of standard input if `paths` is empty.

    The line feed is removed; a last line without a line feed is a line, too. Slow input, such as
    typing, is yielded line by line. `on_read` is called with the number of bytes of each read.
    """
    if not paths:
        async for lines in cut(_chunks(STDIN), on_read):
            yield lines
        return
    for path in paths:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            async for lines in cut(_chunks(descriptor), on_read):
                yield lines
        finally:
            os.close(descriptor)


def size_of(paths: Iterable[Path]) -> int | None:
    """Return the number of bytes in the files; None if unknown."""
    paths = list(paths)
    found = [path.stat() for path in paths] if paths else [os.fstat(STDIN)]
    if all(stat.S_ISREG(entry.st_mode) for entry in found):
        return sum(entry.st_size for entry in found)
    return None


async def cut(
    chunks: AsyncGenerator[bytes], on_read: Callable[[int], None]
) -> AsyncGenerator[list[bytes]]:
    """Cut chunks of bytes into lines; a line may span several chunks."""
    # The chunks of a line whose end is not read yet.
    parts: list[bytes] = []
    async for chunk in chunks:
        on_read(len(chunk))
        end, *following = chunk.split(b"\n")
        parts.append(end)
        if following:
            *whole, rest = following
            yield [b"".join(parts), *whole]
            parts = [rest]
    if last := b"".join(parts):
        yield [last]


async def _chunks(descriptor: int) -> AsyncGenerator[bytes]:
    wait = None if stat.S_ISREG(os.fstat(descriptor).st_mode) else _Readable(descriptor)
    while True:
        if wait is not None:
            await wait.once()
        chunk = os.read(descriptor, _READ_BYTES)
        if not chunk:
            return
        yield chunk
        await asyncio.sleep(0)


class _Readable:
    """Waits until a pipe or a terminal has bytes to read."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._can_wait = True

    async def once(self) -> None:
        if not self._can_wait:
            return
        loop = asyncio.get_running_loop()
        readable = loop.create_future()
        try:
            loop.add_reader(self._descriptor, _set, readable)
        except PermissionError:
            # The system cannot wait for files such as /dev/null, which can always be read.
            self._can_wait = False
            return
        try:
            await readable
        finally:
            loop.remove_reader(self._descriptor)


def _set(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)
