"""What a receive costs a broker's connection: two source trees in alternating rounds.

    python -m bench.receive OTHER/src

prints nanoseconds of processor time for a request in each tree, and the ratio: above 1 this tree
is the faster one. A service answers each request with a few bytes, so that what is measured is the
cutting of requests and the sending of answers. `direct` has a transport that drops what is written;
`loop` is a loopback connection on uvloop, both ends of it counted.
"""

import argparse
import asyncio
import gc
import json
import os
import socket
import statistics
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import uvloop

from ottla.network.connection import RECEIVE_BUFFER_BYTES, Connection
from ottla.network.memory_budget import MemoryBudget
from ottla.network.output import CHUNK_BYTES
from ottla.network.refusals import Refusals
from ottla.network.service import ConnectionLimits

_SIZE = struct.Struct(">i")
_ANSWER = b"\0\0\0\x1cabcdefghijklmnopqrstuvwxyz12"
# Transport, service, requests of one receive, bytes of each.
_CASES = [
    ("direct", "single", 1, 100),
    ("direct", "single", 64, 100),
    ("direct", "run", 64, 100),
    ("direct", "later", 64, 100),
    ("direct", "single", 5, 8192),
    ("loop", "single", 1, 100),
    ("loop", "single", 64, 100),
    ("loop", "run", 64, 100),
    ("loop", "single", 5, 8192),
]


class _Transport(asyncio.Transport):
    """Drops what is written."""

    def __init__(self) -> None:
        super().__init__({"peername": ("", 1), "sockname": ("", 2)})

    def write(self, data: Any) -> None: ...
    def pause_reading(self) -> None: ...
    def resume_reading(self) -> None: ...

    def is_closing(self) -> bool:
        return False

    def get_write_buffer_size(self) -> int:
        return 0


class _Hub:
    """A listener, and the service of its connections."""

    def __init__(self, kind: str) -> None:
        self.service = self
        self.limits = ConnectionLimits()
        self.budget = MemoryBudget(1 << 30)
        self.receive_buffer = memoryview(bytearray(RECEIVE_BUFFER_BYTES))
        self.send_buffer = memoryview(bytearray(CHUNK_BYTES))
        self.refusals = Refusals(time.monotonic)
        self.slots: list[Any] = []
        self._kind = kind

    def on_opened(self, _connection: Connection) -> None: ...
    def on_closed(self, _connection: Connection) -> None: ...

    def attach(self, connection: Connection) -> Callable[[memoryview], Any]:
        connection.serve_run = _serve_run if self._kind == "run" else _serve_no_run
        if self._kind == "later":
            return lambda frame: self.slots.append(connection.defer(len(frame)))
        return lambda _frame: [_ANSWER]


def _serve_no_run(_received: memoryview, _count_max: int) -> None:
    """As a broker's shortcut where the first request is none that it knows."""


def _serve_run(received: memoryview, count_max: int) -> Any:
    position = count = 0
    while count < count_max and position + _SIZE.size <= len(received):
        (size,) = _SIZE.unpack_from(received, position)
        if position + _SIZE.size + size > len(received):
            break
        position += _SIZE.size + size
        count += 1
    return (position, [_ANSWER * count]) if count > 1 else None


def _direct(kind: str, stream: bytes, requests: int) -> Callable[[], float]:
    hub = _Hub(kind)
    loop = asyncio.new_event_loop()
    connection = Connection(hub, loop)  # type: ignore[arg-type]
    connection.connection_made(_Transport())
    receives = max(1, 20_000 // requests)

    async def receive() -> None:
        for _ in range(receives):
            connection.get_buffer(-1)[: len(stream)] = stream
            connection.buffer_updated(len(stream))
            if hub.slots:
                for slot in hub.slots:
                    slot.answer([_ANSWER])
                hub.slots.clear()
                await asyncio.sleep(0)

    return lambda: _timed(loop, receive) / receives / requests


def _looped(kind: str, stream: bytes, requests: int) -> Callable[[], float]:
    hub = _Hub(kind)
    loop = uvloop.new_event_loop()
    accepting = socket.create_server(("127.0.0.1", 0))
    loop.run_until_complete(
        loop.create_server(lambda: Connection(hub, loop), sock=accepting)  # type: ignore[arg-type]
    )
    client = socket.create_connection(accepting.getsockname())
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    client.setblocking(False)
    receives = max(30, 3_000 // requests)
    room = bytearray(RECEIVE_BUFFER_BYTES)

    async def receive() -> None:
        for _ in range(receives):
            await loop.sock_sendall(client, stream)
            left = len(_ANSWER) * requests
            while left:
                left -= await loop.sock_recv_into(client, room)

    return lambda: _timed(loop, receive) / receives / requests


def _timed(loop: asyncio.AbstractEventLoop, work: Callable[[], Any]) -> float:
    begin_ns = time.process_time_ns()
    loop.run_until_complete(work())
    return time.process_time_ns() - begin_ns


def _serve_rounds() -> None:
    """A child: measures one round of the case whose number each line of its input names."""
    rounds = []
    for transport, kind, requests, size in _CASES:
        stream = (_SIZE.pack(size) + b"x" * size) * requests
        rounds.append((_direct if transport == "direct" else _looped)(kind, stream, requests))
    gc.collect()
    gc.disable()
    for line in sys.stdin:
        print(json.dumps(rounds[int(line)]()), flush=True)


def _child(source: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "bench.receive", "--child"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join((source, os.getcwd()))},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def _round(child: "subprocess.Popen[str]", case: int) -> float:
    assert child.stdin is not None
    assert child.stdout is not None
    child.stdin.write(f"{case}\n")
    child.stdin.flush()
    return float(child.stdout.readline())


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.receive", description=__doc__)
    parser.add_argument("other", nargs="?", help="the `src` of another checkout")
    parser.add_argument("--rounds", type=int, default=41)
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        _serve_rounds()
        return
    if arguments.other is None:
        parser.error("which other tree?")
    with _child(os.path.abspath(arguments.other)) as other, _child(os.path.abspath("src")) as this:
        for case, (transport, kind, requests, size) in enumerate(_CASES):
            pairs = []
            for number in range(-1, arguments.rounds):
                if number % 2:
                    pair = (_round(other, case), _round(this, case))
                else:
                    pair = (_round(this, case), _round(other, case))[::-1]
                pairs.append(pair)
            del pairs[0]
            ratios = sorted(theirs / ours for theirs, ours in pairs)
            quarter = len(ratios) // 4
            print(
                f"{transport:6} {kind:6} {requests:2} of {size:4} B"
                f"  other {statistics.median(theirs for theirs, _ in pairs):6.0f} ns"
                f"  this {statistics.median(ours for _, ours in pairs):6.0f} ns"
                f"  ratio {statistics.median(ratios):.3f}"
                f" ({ratios[quarter]:.3f}-{ratios[-quarter - 1]:.3f})",
                flush=True,
            )
        for child in (other, this):
            assert child.stdin is not None
            child.stdin.close()


if __name__ == "__main__":
    main()
