"""What the batches of clients may have expanded before others are served.

Some batches must be expanded (see `record.validation`): 31 KB may be 32 MiB, and take a tenth of a
second. Requests of thirty such batches, or thirty requests in one receive, would hold the loop for
longer than a broker's session; and ten clients that send one after the other would leave nothing of
the loop to others. So connections take turns, with pauses in between.
"""

from ottla.base.clock import Clock
from ottla.base.errors import ErrorCode, OttlaError
from ottla.network.connection import Connection
from ottla.record.validation import Expansion

# Of one request; a single batch may be as large by itself.
_REQUEST_BYTES_MAX = 32 << 20
# After so many bytes the next request of the connection waits for its turn.
_TURN_BYTES_MAX = 4 << 20
# One part of the loop's time is for large expansions, the others for everything else.
_PARTS = 3
_PAUSE_MS_MAX = 10_000


def check_room(expansion: Expansion) -> None:
    """Raises OttlaError, after which clients send again, where a request had enough expanded."""
    if expansion.size_bytes > _REQUEST_BYTES_MAX:
        raise OttlaError(
            ErrorCode.THROTTLING_QUOTA_EXCEEDED,
            f"batches of the same request were expanded to {expansion.size_bytes} bytes; send this "
            "one again, and fewer batches in a request",
        )


class Turns:
    """When connections that had much expanded are served again: one after the other."""

    def __init__(self, clock: Clock) -> None:
        self._monotonic_ms = clock.monotonic_ms
        # Until then the loop is for everything else, and for turns that were given.
        self._taken_until_ms = 0

    def let_others_in(self, connection: Connection, expansion: Expansion, began_ms: int) -> None:
        """Mute a connection whose request had much expanded, since `began_ms`, until its turn."""
        if expansion.size_bytes <= _TURN_BYTES_MAX:
            return
        now_ms = self._monotonic_ms()
        pause_ms = max(1, now_ms - began_ms) * (_PARTS - 1)
        self._taken_until_ms = max(self._taken_until_ms, now_ms) + pause_ms
        connection.mute(min(self._taken_until_ms - now_ms, _PAUSE_MS_MAX))
