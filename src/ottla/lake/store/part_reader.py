"""Reads a file of a store in parts, each by one request."""

import io
from collections.abc import Callable
from typing import Any, BinaryIO, cast

# The least number of bytes of one read, because each read waits for an answer.
_READ_BYTES = 4 << 20

# Returns `length` bytes from `offset` on.
ReadPart = Callable[[int, int], bytes]


class _PartReader(io.RawIOBase):
    def __init__(self, size: int, read_part: ReadPart) -> None:
        self._size = size
        self._read_part = read_part
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        self._at = max(0, start + offset)
        return self._at

    def tell(self) -> int:
        return self._at

    def readinto(self, buffer: Any) -> int:
        length = min(len(buffer), self._size - self._at)
        if length <= 0:
            return 0
        content = memoryview(self._read_part(self._at, length))
        buffer[: len(content)] = content
        self._at += len(content)
        return len(content)


def read_in_parts(size: int, read_part: ReadPart) -> BinaryIO:
    """Return a seekable file of `size` bytes."""
    return cast("BinaryIO", io.BufferedReader(_PartReader(size, read_part), _READ_BYTES))
