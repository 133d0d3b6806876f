"""The fewest bytes of the protocol that tell whether a broker serves.

Written by hand, so that the rig can judge any broker without trusting our own encoder.
"""

import itertools
import os
import random
import socket
import struct
import time
from collections.abc import Iterator
from pathlib import Path

from rig.process import DiedEarly, Process

_METADATA, _VERSION = 3, 1
_FIRST_PORT = 12_000
_PORTS_AT_LEAST = 1_000
# Names the ports of this process and its children, "FIRST-LAST", where others run beside it.
PORTS_VARIABLE = "OTTLA_TEST_PORTS"


def free_port() -> int:
    """A port that nobody listens on now, and that this process has not been given before.

    Below those that the system gives to outgoing connections, where it can be: one of them could
    take the port before it is listened on, or while a broker that is to come back is away.
    """
    for port in _candidates:
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            found: int = probe.getsockname()[1]
            return found
    raise AssertionError("the candidates never end")


def _ports() -> Iterator[int]:
    """Ports in turn, from a random one on, so that processes side by side seldom meet."""
    begin, beyond = _share()
    if beyond - begin < _PORTS_AT_LEAST:
        yield from itertools.repeat(0)  # The system chooses.
    count = beyond - begin
    # Chance of its own: whoever seeds the shared generator would give all processes one order.
    first = random.SystemRandom().randrange(count)
    for number in itertools.count(first):
        yield begin + number % count


def _share() -> tuple[int, int]:
    """The first port of this process, and the first that is not its own any more."""
    first, dash, last = os.environ.get(PORTS_VARIABLE, "").partition("-")
    if dash:
        return int(first), int(last) + 1
    return _FIRST_PORT, _first_of_the_systems()


def port_shares(count: int) -> list[str]:
    """Divide the ports of this process into disjoint shares, as values of PORTS_VARIABLE."""
    begin, beyond = _share()
    size = max(0, beyond - begin) // count
    return [f"{begin + n * size}-{begin + (n + 1) * size - 1}" for n in range(count)]


def _first_of_the_systems() -> int:
    """The first port that outgoing connections may be given; 0 where that is not told."""
    try:
        return int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    except OSError:
        return 0


_candidates = _ports()


def receive_exactly(connection: socket.socket, size: int) -> bytes:
    """Read `size` bytes; ConnectionError if the peer closes before."""
    parts = bytearray()
    while len(parts) < size:
        part = connection.recv(size - len(parts))
        if not part:
            raise ConnectionError(f"closed after {len(parts)} of {size} bytes")
        parts += part
    return bytes(parts)


def receive_frame(connection: socket.socket) -> bytes:
    """Read one answer without its size field."""
    (size,) = struct.unpack(">i", receive_exactly(connection, 4))
    return receive_exactly(connection, size)


def request_frame(api_key: int, version: int, body: bytes, correlation_id: int = 1) -> bytes:
    """A request with header version 1 (client id `rig`) and its size field."""
    header = struct.pack(">hhih3s", api_key, version, correlation_id, 3, b"rig")
    return struct.pack(">i", len(header) + len(body)) + header + body


def serves(port: int, host: str = "127.0.0.1", timeout_s: float = 60.0) -> bool:
    """Whether a broker answers Metadata with at least one live broker."""
    try:
        with socket.create_connection((host, port), timeout_s) as connection:
            connection.sendall(request_frame(_METADATA, _VERSION, struct.pack(">i", 0)))
            answer = receive_frame(connection)
    except OSError:
        return False
    _, brokers = struct.unpack_from(">ii", answer)
    return bool(brokers > 0)


def wait_until_serving(process: Process, port: int, timeout_s: float = 180.0) -> float:
    """Poll until the broker serves; gives the seconds since its process was started."""
    deadline_s = time.perf_counter() + timeout_s
    while time.perf_counter() < deadline_s:
        if not process.alive():
            code = process.child.returncode
            raise DiedEarly(f"exit code {code} before it served:\n{process.log_tail()}")
        if serves(port, timeout_s=5.0):
            return time.perf_counter() - process.started_s
        time.sleep(0.01)
    raise DiedEarly(f"not serving after {timeout_s:.0f} s:\n{process.log_tail()}")


def connect(port: int, timeout_s: float = 60.0, from_host: str = "") -> socket.socket:
    """A connection on loopback that sends small frames at once; `from_host` is its own address."""
    source = (from_host, 0) if from_host else None
    connection = socket.create_connection(("127.0.0.1", port), timeout_s, source)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection
