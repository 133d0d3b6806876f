"""What is on its way to a client: bytes, and regions of files read only when the socket takes them.

A slow reader therefore costs one chunk of memory, whatever it asked for. Warm regions are read
without blocking (RWF_NOWAIT); cold ones by a thread, while the answers behind them wait.
"""

import asyncio
import errno
import logging
import os
import sys
from collections import deque
from collections.abc import Callable, Iterable
from typing import cast

from ottla.wire.parts import FileRegion, Part

_log = logging.getLogger(__name__)

# Measured (ADR 4): larger chunks fall out of the processor's cache, smaller ones cost calls.
CHUNK_BYTES = 256 << 10


class HeldRegion:
    """A region that may wait: its file is kept open by a descriptor of our own."""

    __slots__ = ("fd", "position", "size")

    def __init__(self, region: FileRegion) -> None:
        self.fd = os.dup(region.fd)
        self.position = region.position
        self.size = region.size

    def close(self) -> None:
        os.close(self.fd)


# What a connection holds until the socket takes it.
Piece = bytes | bytearray | memoryview | HeldRegion


def held(parts: list[Part]) -> list[Piece]:
    """The parts of an answer, safe to keep until all earlier answers are sent."""
    for part in parts:
        if part.__class__ is FileRegion:
            break
    else:
        # Nearly always; a copy would cost as much again.
        return cast("list[Piece]", parts)
    return [HeldRegion(part) if isinstance(part, FileRegion) else part for part in parts]


def let_go(pieces: Iterable[Piece]) -> None:
    """Forget pieces that will not be sent."""
    for piece in pieces:
        if isinstance(piece, HeldRegion):
            piece.close()


class Output:
    """The parts that wait for a connection's socket, in order."""

    def __init__(
        self,
        transport: asyncio.Transport,
        loop: asyncio.AbstractEventLoop,
        on_drained: Callable[[], None],
    ) -> None:
        self._transport = transport
        self._loop = loop
        self._on_drained = on_drained
        self._waiting: deque[Piece] = deque()
        self._paused = False
        self._reading_cold = False
        self._closed = False

    @property
    def blocked(self) -> bool:
        """Whether the client reads more slowly than it asks."""
        return self._paused or bool(self._waiting)

    @property
    def waiting_bytes_in_memory(self) -> int:
        """Bytes that wait here for the socket; regions of files take none."""
        return self._transport.get_write_buffer_size() + sum(
            len(part) for part in self._waiting if not isinstance(part, HeldRegion)
        )

    def send(self, pieces: list[Piece]) -> None:
        """Send `pieces` after all that was sent before."""
        if not self._waiting and not any(piece.__class__ is HeldRegion for piece in pieces):
            # No region is among them, so they are all bytes.
            data = pieces[0] if len(pieces) == 1 else b"".join(cast("list[bytes]", pieces))
            self._transport.write(cast("bytes", data))
            return
        self._waiting += pieces
        self._pump()

    def pause(self) -> None:
        """The socket takes no more for now."""
        self._paused = True

    def resume(self) -> None:
        """The socket has taken what it was given."""
        self._paused = False
        self._pump()
        if not self.blocked:
            self._on_drained()

    def close(self) -> None:
        """Forget what waits, and let go of its files."""
        self._closed = True
        if self._reading_cold:
            return
        let_go(self._waiting)
        self._waiting.clear()

    def _pump(self) -> None:
        waiting = self._waiting
        while waiting and not self._paused and not self._reading_cold and not self._closed:
            part = waiting[0]
            if isinstance(part, HeldRegion):
                self._pump_region(part)
            else:
                waiting.popleft()
                self._transport.write(part)

    def _pump_region(self, region: HeldRegion) -> None:
        size = min(region.size, CHUNK_BYTES)
        try:
            chunk = read_warm(region.fd, region.position, size)
        except OSError:
            chunk = b""  # Why a disk fails is told by the read that waits for it.
        if len(chunk) == 0:
            self._reading_cold = True
            job = self._loop.run_in_executor(None, os.pread, region.fd, size, region.position)
            job.add_done_callback(self._on_cold_read)
            return
        self._advance(region, chunk)

    def _advance(self, region: HeldRegion, chunk: bytes | memoryview) -> None:
        region.position += len(chunk)
        region.size -= len(chunk)
        if region.size == 0:
            self._waiting.popleft()
            region.close()
        self._transport.write(chunk)

    def _on_cold_read(self, job: "asyncio.Future[bytes]") -> None:
        self._reading_cold = False
        if self._closed:
            self.close()
            return
        error = job.exception()
        chunk = b"" if error is not None else job.result()
        if not chunk:
            # The size of the answer is already on its way: only closing tells the client.
            _log.error("cannot read a segment for a client, closing its connection: %s", error)
            self._transport.abort()
            return
        region = self._waiting[0]
        assert isinstance(region, HeldRegion)
        self._advance(region, chunk)
        self._pump()
        if not self.blocked:
            self._on_drained()


def read_warm(fd: int, position: int, size: int) -> bytes | memoryview:
    """Up to `size` bytes at `position` that need no disk; empty where none are cached."""
    if sys.platform != "linux":
        return os.pread(fd, size, position)
    chunk = bytearray(size)
    try:
        count = os.preadv(fd, [chunk], position, os.RWF_NOWAIT)
    except BlockingIOError:
        return b""
    except OSError as error:
        if error.errno == errno.EOPNOTSUPP:  # A file system that cannot tell warm from cold.
            return os.pread(fd, size, position)
        raise
    return memoryview(chunk)[:count]
