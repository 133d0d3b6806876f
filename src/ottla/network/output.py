"""The outgoing bytes of a client. File regions are read only when the socket can take them.

A slow client therefore costs one chunk of memory, however much it requested. Regions in the page
cache are read without blocking (RWF_NOWAIT) into a buffer that all connections share, and are sent
at once, together with the bytes before and after them. A thread reads regions that are not
cached, while later answers wait.
"""

import asyncio
import errno
import logging
import os
from collections import deque
from collections.abc import Callable, Iterable
from typing import cast

from ottla.base import system
from ottla.wire.parts import FileRegion, Part

_log = logging.getLogger(__name__)

# Measured (ADR 4): larger chunks fall out of the processor's cache, smaller ones cost calls.
CHUNK_BYTES = 512 << 10
# TLS copies each chunk three times. Copies of this size stay in the processor's cache, and the
# allocator reuses their memory. Copies of half a MiB would be mapped anew each time, which takes
# 2.5 times the CPU.
TLS_CHUNK_BYTES = 64 << 10
# The most pieces in one write.
_PIECES_MAX = 64
# `_gather` returns this first if the next region is not in the page cache.
_IS_COLD = True


class HeldRegion:
    """A file region that can wait to be sent; its own descriptor keeps the file open."""

    __slots__ = ("fd", "position", "size")

    def __init__(self, region: FileRegion) -> None:
        self.fd = os.dup(region.fd)
        self.position = region.position
        self.size = region.size

    def close(self) -> None:
        os.close(self.fd)


Bytes = bytes | bytearray | memoryview
# The form in which a connection keeps a part of an answer until the socket takes it.
Piece = Bytes | HeldRegion


def held(parts: list[Part]) -> list[Piece]:
    """Return the parts of an answer in a form that can be kept until earlier answers are sent."""
    for part in parts:
        if part.__class__ is FileRegion:
            break
    else:
        # A cast, since nearly always all parts are bytes already; a copy would double the cost.
        return cast("list[Piece]", parts)
    pieces: list[Piece] = []
    try:
        pieces.extend(HeldRegion(part) if isinstance(part, FileRegion) else part for part in parts)
    except OSError:
        # The process has no descriptor left: the connection ends.
        let_go(pieces)
        raise
    return pieces


def let_go(pieces: Iterable[Piece]) -> None:
    """Release pieces that will not be sent."""
    for piece in pieces:
        if isinstance(piece, HeldRegion):
            piece.close()


class Output:
    """The parts of answers that wait for a connection's socket, in order."""

    def __init__(
        self,
        transport: asyncio.Transport,
        loop: asyncio.AbstractEventLoop,
        on_drained: Callable[[], None],
        chunk: memoryview,
    ) -> None:
        """Create the output. It reads file regions into `chunk`, which is unused between calls."""
        self._transport = transport
        self._loop = loop
        self._on_drained = on_drained
        self._descriptor = _descriptor(transport)
        is_encrypted = transport.get_extra_info("sslcontext") is not None
        self._chunk = chunk[:TLS_CHUNK_BYTES] if is_encrypted else chunk
        self._waiting: deque[Piece] = deque()
        self._paused = False
        self._reading_cold = False
        self._closed = False

    @property
    def blocked(self) -> bool:
        """Return whether unsent data waits because the client reads too slowly."""
        return self._paused or bool(self._waiting)

    def send(self, pieces: list[Piece]) -> None:
        """Send `pieces` after all earlier ones."""
        if not self._waiting:
            for piece in pieces:
                if piece.__class__ is HeldRegion:
                    break
            else:
                # Here all pieces are bytes.
                data = pieces[0] if len(pieces) == 1 else b"".join(cast("list[bytes]", pieces))
                self._transport.write(cast("bytes", data))
                return
        self._waiting += pieces
        self._pump()

    def pause(self) -> None:
        """Stop writing: the socket's buffer is full."""
        self._paused = True

    def resume(self) -> None:
        """Resume writing: the socket's buffer has room again."""
        self._paused = False
        self._pump()
        if not self.blocked:
            self._on_drained()

    def close(self) -> None:
        """Drop the waiting pieces, and release their files."""
        self._closed = True
        # The callback belongs to the owner of this object; a cycle would wait for the garbage
        # collector.
        self._on_drained = _ignore
        if self._reading_cold:
            return
        let_go(self._waiting)
        self._waiting.clear()

    # Hot: once per chunk of a fetch.
    def _pump(self) -> None:
        while self._waiting and not self._paused and not self._reading_cold and not self._closed:
            is_cold, pieces, size = self._gather()
            if pieces:
                self._write(pieces, size)
            if is_cold and not self._paused and not self._closed:
                self._read_cold()

    def _gather(self) -> tuple[bool, list[Bytes], int]:
        """Collect the data of one write.

        Return whether a region outside the page cache is next, the data, and its size.
        """
        waiting, chunk = self._waiting, self._chunk
        pieces: list[Bytes] = []
        filled = size = 0
        while waiting and len(pieces) < _PIECES_MAX and filled < len(chunk):
            part = waiting[0]
            if not isinstance(part, HeldRegion):
                waiting.popleft()
                pieces.append(part)
                size += len(part)
                continue
            room = chunk[filled : filled + min(part.size, len(chunk) - filled)]
            count = read_warm(part.fd, part.position, room)
            if count == 0:
                return _IS_COLD, pieces, size
            pieces.append(room[:count])
            filled += count
            size += count
            self._advance(part, count)
        return not _IS_COLD, pieces, size

    def _write(self, pieces: list[Bytes], size: int) -> None:
        """Write as much as the socket takes at once; give the transport a copy of the rest."""
        transport = self._transport
        sent = 0
        if (
            self._descriptor is not None
            and not transport.get_write_buffer_size()
            and not transport.is_closing()
        ):
            try:
                sent = os.writev(self._descriptor, pieces)
            except OSError:
                # The socket is full; or it is broken, which the transport notices by itself.
                sent = 0
            if sent == size:
                return
        transport.write(b"".join(pieces)[sent:])

    def _read_cold(self) -> None:
        region = self._waiting[0]
        assert isinstance(region, HeldRegion)
        self._reading_cold = True
        size = min(region.size, CHUNK_BYTES)
        job = self._loop.run_in_executor(None, system.pread, region.fd, size, region.position)
        job.add_done_callback(self._on_cold_read)

    def _advance(self, region: HeldRegion, count: int) -> None:
        region.position += count
        region.size -= count
        if region.size == 0:
            self._waiting.popleft()
            region.close()

    def _on_cold_read(self, job: "asyncio.Future[bytes]") -> None:
        self._reading_cold = False
        error = job.exception()
        if self._closed:
            self.close()
            return
        chunk = b"" if error is not None else job.result()
        if not chunk:
            # The answer's size was sent already, so the client learns of the error only by a close.
            _log.error("cannot read a segment for a client, closing its connection: %s", error)
            self._transport.abort()
            return
        region = self._waiting[0]
        assert isinstance(region, HeldRegion)
        self._advance(region, len(chunk))
        self._transport.write(chunk)
        self._pump()
        if not self.blocked:
            self._on_drained()


def read_warm(fd: int, position: int, room: memoryview) -> int:
    """Read the bytes at `position` that are in the page cache into `room`; return their number.

    Return 0 if none are cached, or if the read fails; the blocking read that follows then reports
    the error.
    """
    try:
        if system.NO_WAIT is None:
            return system.preadv(fd, [room], position)
        return os.preadv(fd, [room], position, system.NO_WAIT)
    except OSError as error:
        if error.errno != errno.EOPNOTSUPP:
            return 0
    # The file system does not support RWF_NOWAIT, so this read may wait for the disk.
    try:
        return system.preadv(fd, [room], position)
    except OSError:
        return 0


def _descriptor(transport: asyncio.Transport) -> int | None:
    """Return the descriptor of the transport's socket, or None if it must not be written to."""
    socket = transport.get_extra_info("socket")
    if socket is None or transport.get_extra_info("sslcontext") is not None:
        return None
    return cast("int", socket.fileno()) if hasattr(os, "writev") else None


def _ignore() -> None:
    """Do nothing, for a connection that has ended."""
