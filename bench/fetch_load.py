"""A reader in a process of its own: one connection, two fetches of a megabyte in flight.

It reads partition 0 from its start, again and again, and looks at the sizes of the answers alone.
Prints one line of JSON.
"""

import argparse
import json
import socket
import struct
import sys
import time
from typing import Any

from bench.load import connected
from ottla.wire.frames import decode_response, encode_request
from ottla.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from rig.probe import receive_frame

_VERSION = 11  # Names its topics, which Kafka 4.3 knows, too.
_FETCH_BYTES = 1 << 20
_BUFFER_BYTES = 1 << 20


def request(topic: str, offset: int) -> bytes:
    """A whole frame of a fetch of a megabyte from `offset` on."""
    partition = FetchPartition(
        partition=0,
        fetch_offset=offset,
        log_start_offset=-1,
        partition_max_bytes=_FETCH_BYTES,
    )
    message = FetchRequest(
        replica_id=-1,
        max_wait_ms=500,
        min_bytes=1,
        max_bytes=_FETCH_BYTES,
        session_epoch=-1,
        topics=[FetchTopic(topic=topic, partitions=[partition])],
    )
    return b"".join(bytes(part) for part in encode_request(message, _VERSION, 1, "bench"))  # type: ignore[arg-type]


def _skip(connection: socket.socket, buffer: bytearray) -> int:
    """Receive one answer; its size."""
    head = b""
    while len(head) < 4:
        head += connection.recv(4 - len(head)) or _gone()
    (size,) = struct.unpack(">i", head)
    left = size
    while left:
        left -= connection.recv_into(buffer, min(left, len(buffer))) or len(_gone())
    return int(size)


def _gone() -> bytes:
    raise ConnectionError("the broker closed the connection")


def run(port: int, topic: str, seconds: float, authority: str | None) -> dict[str, Any]:
    """Read for so long."""
    with connected(port, authority) as connection:
        connection.sendall(request(topic, 0))
        first = receive_frame(connection)
        data = decode_response(1, _VERSION, memoryview(first))[1].responses[0].partitions[0]
        records = bytes(data.records or b"")
        batch_bytes = 12 + int.from_bytes(records[8:12], "big")
        batch_records = 1 + int.from_bytes(records[23:27], "big")
        step = len(records) // batch_bytes * batch_records
        requests = [request(topic, offset) for offset in range(0, data.high_watermark - step, step)]
        buffer = bytearray(_BUFFER_BYTES)
        received, number = 0, 2
        cpu_s, began_s = time.process_time(), time.perf_counter()
        connection.sendall(requests[0] + requests[1 % len(requests)])
        while True:
            received += _skip(connection, buffer)
            now_s = time.perf_counter()
            if now_s - began_s >= seconds:
                break
            connection.sendall(requests[number % len(requests)])
            number += 1
    return {
        "bytes": received,
        "seconds": now_s - began_s,
        "generator_cpu_s": time.process_time() - cpu_s,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--topic", required=True)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--authority", help="speak TLS, and trust this certificate")
    chosen = parser.parse_args()
    print(json.dumps(run(chosen.port, chosen.topic, chosen.seconds, chosen.authority)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
