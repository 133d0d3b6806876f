"""The parts of an encoded message: bytes, and regions of files that are sent without copying."""

from collections.abc import Sequence
from typing import TypeAlias


class FileRegion:
    """`size` bytes at `position` of the open file `fd`, to be sent by the network layer.

    Its creator keeps `fd` open until the bytes are sent.
    """

    __slots__ = ("fd", "position", "size")

    def __init__(self, fd: int, position: int, size: int) -> None:
        assert position >= 0
        assert size >= 0
        self.fd = fd
        self.position = position
        self.size = size

    def __len__(self) -> int:
        return self.size

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, FileRegion):
            return NotImplemented
        return (self.fd, self.position, self.size) == (other.fd, other.position, other.size)

    def __hash__(self) -> int:
        return hash((self.fd, self.position, self.size))

    def __repr__(self) -> str:
        return f"FileRegion(fd={self.fd}, position={self.position}, size={self.size})"


Buffer: TypeAlias = bytes | bytearray | memoryview
Part: TypeAlias = bytes | bytearray | memoryview | FileRegion
# The type of the records field of a message to send. A sequence must be a list or a tuple. Records
# are added to the parts by reference, and never copied.
Records: TypeAlias = Part | Sequence[Part] | None
