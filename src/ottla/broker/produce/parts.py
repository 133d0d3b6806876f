"""The parts of a broker that serve Produce, and a fair order for batches to be decompressed.

Some batches must be decompressed to validate them (see `record.validation`). A batch of 31 KB may
have 32 MiB of records, which take a tenth of a second. Thirty such batches, in one request or one
receive, would block the loop for longer than a broker's session timeout. Ten clients that send them
one after the other would leave no time for other clients. So these connections take turns, with
pauses in between.
"""

from dataclasses import dataclass

from ottla.base.clock import Clock
from ottla.base.errors import ErrorCode, OttlaError
from ottla.broker.cluster.new_leaders import NewLeaders
from ottla.broker.partitions.partitions import Partitions
from ottla.broker.runtime.runtime import Runtime
from ottla.broker.usage.part import UsagePart
from ottla.network.connection import Connection
from ottla.record.validation import Expansion

# The most bytes to decompress per request; a single batch may have this many by itself.
_REQUEST_BYTES_MAX = 32 << 20
# A connection that has decompressed more than this waits for its turn before its next request.
_TURN_BYTES_MAX = 4 << 20
# A third of the loop's time may be used for large decompressions.
_PARTS = 3
_PAUSE_MS_MAX = 10_000


def check_room(expansion: Expansion) -> None:
    """Raise a retriable OttlaError if a request has decompressed too much."""
    if expansion.size_bytes > _REQUEST_BYTES_MAX:
        raise OttlaError(
            ErrorCode.THROTTLING_QUOTA_EXCEEDED,
            f"batches of the same request were expanded to {expansion.size_bytes} bytes; send this "
            "one again, and fewer batches in a request",
        )


class Turns:
    """Serves connections that decompress much one at a time, with pauses in between."""

    def __init__(self, clock: Clock) -> None:
        self._monotonic_ms = clock.monotonic_ms
        # The end of the time that is reserved for other work and for turns already assigned.
        self._taken_until_ms = 0

    def let_others_in(self, connection: Connection, expansion: Expansion, began_ms: int) -> None:
        """Mute a connection until its turn, if it has decompressed much since `began_ms`."""
        if expansion.size_bytes <= _TURN_BYTES_MAX:
            return
        now_ms = self._monotonic_ms()
        pause_ms = max(1, now_ms - began_ms) * (_PARTS - 1)
        self._taken_until_ms = max(self._taken_until_ms, now_ms) + pause_ms
        connection.mute(min(self._taken_until_ms - now_ms, _PAUSE_MS_MAX))


@dataclass(frozen=True, slots=True)
class ProduceParts:
    """The parts that the fast paths of all connections and waiting answers share."""

    runtime: Runtime
    partitions: Partitions
    new_leaders: NewLeaders
    turns: Turns
    usage: UsagePart
