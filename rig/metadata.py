"""Metadata version 1 by hand: who is in a cluster, and who leads what, as one broker tells it."""

import socket
import struct
from dataclasses import dataclass

from rig.probe import receive_frame, request_frame

_METADATA, _VERSION = 3, 1
NO_LEADER = -1


@dataclass(frozen=True, slots=True)
class SeenPartition:
    """One partition. `error` is a code of the protocol."""

    error: int
    leader: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Seen:
    """The ports of the brokers by id, the controller's id, partitions by topic and index."""

    ports: dict[int, int]
    controller: int
    topics: dict[str, dict[int, SeenPartition]]


def ask(connection: socket.socket, topics: list[str] | None = None) -> Seen:
    """What this broker knows of these topics; of all of them by default.

    A topic that is not there is made, where the broker does that. Raises OSError.
    """
    body = struct.pack(">i", -1 if topics is None else len(topics))
    for name in topics or ():
        encoded = name.encode()
        body += struct.pack(">h", len(encoded)) + encoded
    connection.sendall(request_frame(_METADATA, _VERSION, body))
    return _Answer(receive_frame(connection)).seen()


class _Answer:
    """The answer's bytes, read from front to back."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 4  # Behind the correlation id.

    def seen(self) -> Seen:
        ports = {}
        for _ in range(self._number(">i")):
            broker = self._number(">i")
            self._string()
            ports[broker] = self._number(">i")
            self._string()
        controller = self._number(">i")
        topics = dict(self._topic() for _ in range(self._number(">i")))
        return Seen(ports, controller, topics)

    def _topic(self) -> tuple[str, dict[int, SeenPartition]]:
        self._at += 2
        name = self._string()
        self._at += 1
        return name, dict(self._partition() for _ in range(self._number(">i")))

    def _partition(self) -> tuple[int, SeenPartition]:
        error, index, leader = struct.unpack_from(">hii", self._data, self._at)
        self._at += 10
        return index, SeenPartition(error, leader, self._numbers(), self._numbers())

    def _number(self, layout: str) -> int:
        (value,) = struct.unpack_from(layout, self._data, self._at)
        self._at += struct.calcsize(layout)
        return int(value)

    def _numbers(self) -> tuple[int, ...]:
        count = self._number(">i")
        self._at += 4 * count
        return struct.unpack_from(f">{count}i", self._data, self._at - 4 * count)

    def _string(self) -> str:
        size = self._number(">h")
        if size < 0:
            return ""
        self._at += size
        return self._data[self._at - size : self._at].decode()
