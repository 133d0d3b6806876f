"""The parts of a broker that serving Produce needs, and turns for batches that are expanded.

Some batches must be expanded (see `record.validation`): 31 KB may be 32 MiB, and take a tenth of a
second. Requests of thirty such batches, or thirty requests in one receive, would hold the loop for
longer than a broker's session; and ten clients that send one after the other would leave nothing of
the loop to others. So connections take turns, with pauses in between.
"""

from dataclasses import dataclass

from ottla.base.clock import Clock
from ottla.base.errors import ErrorCode, OttlaError
from ottla.broker.cluster.new_leaders import NewLeaders
from ottla.broker.partitions.partitions import Partitions
from ottla.broker.runtime.runtime import Runtime
from ottla.network.connection import Connection
from ottla.record.validation import Expansion

# The limit per request; a single batch may be this large by itself.
_REQUEST_BYTES_MAX = 32 << 20
# After this many bytes the connection's next request waits for its turn.
_TURN_BYTES_MAX = 4 << 20
# One part of the loop's time is for large decompressions, the others are for everything else.
_PARTS = 3
_PAUSE_MS_MAX = 10_000


def check_room(expansion: Expansion) -> None:
    """Raise a retriable OttlaError if a request had too much decompressed."""
    if expansion.size_bytes > _REQUEST_BYTES_MAX:
        raise OttlaError(
            ErrorCode.THROTTLING_QUOTA_EXCEEDED,
            f"batches of the same request were expanded to {expansion.size_bytes} bytes; send this "
            "one again, and fewer batches in a request",
        )


class Turns:
    """The order in which connections with much decompression are served again, one at a time."""

    def __init__(self, clock: Clock) -> None:
        self._monotonic_ms = clock.monotonic_ms
        # Until this time the loop is for other work, and for turns already given.
        self._taken_until_ms = 0

    def let_others_in(self, connection: Connection, expansion: Expansion, began_ms: int) -> None:
        """Mute a connection until its turn, if it decompressed much since `began_ms`."""
        if expansion.size_bytes <= _TURN_BYTES_MAX:
            return
        now_ms = self._monotonic_ms()
        pause_ms = max(1, now_ms - began_ms) * (_PARTS - 1)
        self._taken_until_ms = max(self._taken_until_ms, now_ms) + pause_ms
        connection.mute(min(self._taken_until_ms - now_ms, _PAUSE_MS_MAX))


@dataclass(frozen=True, slots=True)
class ProduceParts:
    """Shared by the fast paths of all connections and by waiting answers."""

    runtime: Runtime
    partitions: Partitions
    new_leaders: NewLeaders
    turns: Turns
