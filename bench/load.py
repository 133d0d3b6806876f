"""The load generator: one process, one connection, requests encoded beforehand, so many in flight.

It answers each arrival with as many new requests in one system call as answers came in, which it
counts by their size alone. Prints one line of JSON.
"""

import argparse
import json
import socket
import ssl
import struct
import sys
import time
from typing import Any

from rig.frames import batch, error_position, produce_request
from rig.probe import receive_frame

_IN_FLIGHT = 5


def first_answer(connection: socket.socket, request: bytes, topic: str) -> int:
    """Send one request by itself, check its answer, and give the size of an answer's frame."""
    connection.sendall(request)
    answer = receive_frame(connection)
    (error,) = struct.unpack_from(">h", answer, error_position(topic) - 4)
    if error:
        raise ValueError(f"the broker answered with error {error}")
    return 4 + len(answer)


def drive(
    connection: socket.socket, request: bytes, answer_bytes: int, error_at: int, seconds: float
) -> tuple[int, float]:
    """Keep requests in flight for so long; gives how many were answered, and the time it took."""
    several = memoryview(request * _IN_FLIGHT)
    size = len(request)
    buffer = bytearray(answer_bytes * _IN_FLIGHT)
    held = answered = 0
    began_s = now_s = time.perf_counter()
    end_s = began_s + seconds
    connection.sendall(several)
    sent = _IN_FLIGHT
    while answered < sent:
        got = connection.recv_into(memoryview(buffer)[held:])
        if got == 0:
            raise ConnectionError("the broker closed the connection")
        held += got
        done = held // answer_bytes
        if not done:
            continue
        # A refusal may have another size, so the first answer of each arrival is looked at.
        if buffer[error_at] or buffer[error_at + 1]:
            raise ValueError(f"the broker answered with error {buffer[error_at + 1]}")
        held -= done * answer_bytes
        if held:
            buffer[:held] = buffer[done * answer_bytes : done * answer_bytes + held]
        answered += done
        now_s = time.perf_counter()
        if now_s < end_s:
            connection.sendall(several[: done * size])
            sent += done
    return answered, now_s - began_s


def connected(port: int, authority: str | None = None) -> socket.socket:
    """A connection to this machine; over TLS where an authority's certificate is given."""
    connection = socket.create_connection(("127.0.0.1", port), 30)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if authority is None:
        return connection
    context = ssl.create_default_context(cafile=authority)
    return context.wrap_socket(connection, server_hostname="localhost")


def run(
    port: int,
    topic: str,
    batch_bytes: int,
    seconds: float,
    acks: int,
    authority: str | None = None,
) -> dict[str, Any]:
    """One run against partition 0 of a topic that exists."""
    made = batch(batch_bytes, 100, int(time.time() * 1000))
    request = produce_request(topic, 0, made.data, acks)
    with connected(port, authority) as connection:
        answer_bytes = first_answer(connection, request, topic)
        cpu_s = time.process_time()
        answered, took_s = drive(connection, request, answer_bytes, error_position(topic), seconds)
    return {
        "requests": answered,
        "seconds": took_s,
        "records": (answered + 1) * made.records,
        "bytes": answered * len(made.data),
        "generator_cpu_s": time.process_time() - cpu_s,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--topic", required=True)
    parser.add_argument("--batch-bytes", type=int, default=8192)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--acks", type=int, default=1)
    parser.add_argument("--authority", help="speak TLS, and trust this certificate")
    chosen = parser.parse_args()
    result = run(
        *(chosen.port, chosen.topic, chosen.batch_bytes),
        *(chosen.seconds, chosen.acks, chosen.authority),
    )
    print(json.dumps(result))
    return 0


if __name__ == "__main__":
    sys.exit(main())
