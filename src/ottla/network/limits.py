"""Limits of one connection."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """Bounds of one listener's connections. Sizes in bytes, times in milliseconds."""

    # `socket.request.max.bytes`
    request_bytes_max: int = 100 << 20
    # Requests that one connection may have without an answer before it is no longer read.
    unanswered_requests_max: int = 256
    unanswered_bytes_max: int = 64 << 20
    # `connections.max.idle.ms`; negative: never.
    idle_ms_max: int = 600_000
    # `socket.send.buffer.bytes`, `socket.receive.buffer.bytes`; -1 leaves them to the system.
    send_buffer_bytes: int = -1
    receive_buffer_bytes: int = -1
    # `socket.listen.backlog.size`
    backlog: int = 50
