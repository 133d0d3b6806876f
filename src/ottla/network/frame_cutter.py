"""Cuts a stream of answers into frames, for the side of a connection that sends the requests.

Small frames are copied out of an inbox. A large frame is received directly into a buffer of its
own, from which its records are later read. Neither is modified afterwards. Does no I/O: its
methods are those that asyncio calls on a `BufferedProtocol`.
"""

from collections.abc import Callable
from struct import Struct
from typing import Final

_SIZE: Final = Struct(">i")
_INBOX_BYTES: Final = 64 << 10
# A frame has at least a correlation id.
_FRAME_BYTES_MIN: Final = 4
# How many bytes of an invalid stream a message shows.
_SHOWN_BYTES: Final = 16


class FrameCutter:
    """The receiving half of one connection.

    `on_frame` is called with each frame, without its size prefix. `on_bad_size` is called with a
    size that no answer can have, and with the first bytes of that frame. After `stop` or a bad size
    neither is called.
    """

    def __init__(
        self,
        frame_bytes_max: int,
        on_frame: Callable[[memoryview], None],
        on_bad_size: Callable[[int, bytes], None],
    ) -> None:
        self._frame_bytes_max = frame_bytes_max
        self._on_frame = on_frame
        self._on_bad_size = on_bad_size
        self._inbox = bytearray(_INBOX_BYTES)
        self._inbox_view = memoryview(self._inbox)
        self._inbox_end = 0
        # A frame too large for the inbox, and how many of its bytes were received.
        self._large: memoryview | None = None
        self._large_filled = 0
        self._stopped = False

    def stop(self) -> None:
        """Stop calling back, and drop partly received frames."""
        self._stopped = True
        self._large = None

    def get_buffer(self) -> memoryview:
        """Return the buffer for the next receive."""
        if self._large is not None:
            return self._large[self._large_filled :]
        return self._inbox_view[self._inbox_end :]

    def buffer_updated(self, count: int) -> None:
        """Take in `count` bytes received into the buffer of `get_buffer`."""
        if self._large is None:
            self._inbox_end += count
            self._cut()
            return
        self._large_filled += count
        if self._large_filled == len(self._large):
            frame, self._large = self._large, None
            self._on_frame(frame)

    def _cut(self) -> None:
        start, end = 0, self._inbox_end
        self._inbox_end = 0
        while end - start >= _SIZE.size and not self._stopped:
            (size,) = _SIZE.unpack_from(self._inbox, start)
            if not _FRAME_BYTES_MIN <= size <= self._frame_bytes_max:
                self._stopped = True
                self._on_bad_size(size, bytes(self._inbox_view[start:end][:_SHOWN_BYTES]))
                return
            start += _SIZE.size
            if end - start < size:
                self._large = memoryview(bytearray(size))
                self._large_filled = end - start
                self._large[: end - start] = self._inbox_view[start:end]
                return
            # A copy, because its records are still read after the inbox is reused.
            self._on_frame(memoryview(bytes(self._inbox_view[start : start + size])))
            start += size
        if start < end and not self._stopped:
            rest = bytes(self._inbox_view[start:end])
            self._inbox[: len(rest)] = rest
            self._inbox_end = len(rest)
