"""What the batches of a client may have expanded before others are served.

Some batches must be expanded (see `record.validation`): 31 KB may be 32 MiB, and take a tenth of a
second. Requests of thirty such batches, or thirty requests in one receive, would hold the loop for
longer than a broker's session.
"""

from ottla.base.errors import ErrorCode, OttlaError
from ottla.network.connection import Connection
from ottla.record.validation import Expansion

# Of one request; a single batch may be as large by itself.
_REQUEST_BYTES_MAX = 32 << 20
# After so many bytes the next request of the connection waits for a moment.
_TURN_BYTES_MAX = 4 << 20
_PAUSE_MS = 1


def check_room(expansion: Expansion) -> None:
    """Raises OttlaError, after which clients send again, where a request had enough expanded."""
    if expansion.size_bytes > _REQUEST_BYTES_MAX:
        raise OttlaError(
            ErrorCode.THROTTLING_QUOTA_EXCEEDED,
            f"batches of the same request were expanded to {expansion.size_bytes} bytes; send this "
            "one again, and fewer batches in a request",
        )


def let_others_in(connection: Connection, expansion: Expansion) -> None:
    """Serve other connections before the next request of this one, if it had much expanded."""
    if expansion.size_bytes > _TURN_BYTES_MAX:
        connection.mute(_PAUSE_MS)
