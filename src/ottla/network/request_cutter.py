"""Cuts received bytes into requests, and recognises other protocols by the first bytes.

Bytes are received into `get_buffer` and counted by `received`. `advance` then moves from one whole
request to the next, and `keep` saves the remaining bytes at the end of the turn. Requests are read
in place: in the buffer that all connections of a loop share, in a separate buffer for a large
request, or in a copy for a request that had to wait. Their bytes are valid until the turn ends.
"""

from struct import Struct
from typing import Final, NamedTuple

_HTTP_VERBS = (
    b"GET ",
    b"HEAD",
    b"POST",
    b"PUT ",
    b"DELE",
    b"OPTI",
    b"PATC",
    b"CONN",
    b"TRAC",
    b"PRI ",
)
_TLS_HANDSHAKE = b"\x16\x03"

_HTTP_TEXT: Final = (
    b"This port speaks Apache Kafka's protocol, not HTTP: use a Kafka client, or `ottla consume`.\n"
)
_HTTP_ANSWER: Final = (
    b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\n"
    b"Content-Length: %d\r\nConnection: close\r\n\r\n%b" % (len(_HTTP_TEXT), _HTTP_TEXT)
)


class Foreign(NamedTuple):
    """A protocol other than Kafka: its name, an explanation with a remedy, and an answer."""

    name: str
    what: str
    answer: bytes = b""


_TLS = Foreign(
    "TLS",
    "a TLS handshake on a plaintext listener: set security.protocol=PLAINTEXT in the client, or"
    " point it to a TLS listener",
)
_HTTP = Foreign(
    "HTTP", "an HTTP request: this port speaks Kafka's protocol, use a Kafka client", _HTTP_ANSWER
)
_SSH = Foreign("SSH", "an SSH greeting: this port speaks Kafka's protocol, use a Kafka client")


def foreign_protocol(head: bytes) -> Foreign | None:
    """Return the protocol of `head`, the first bytes of a connection.

    Returns None if the bytes could be a Kafka request: four bytes of size, then the API key.
    """
    if head[:2] == _TLS_HANDSHAKE:
        return _TLS
    if head[:4] in _HTTP_VERBS:
        return _HTTP
    if head[:4] == b"SSH-":
        return _SSH
    return None


def explain_bad_size(size: int, size_max: int, *, is_known: bool) -> str:
    """Explain in a sentence why a frame that claims `size` bytes is refused."""
    if size <= 0:
        return f"the client sent a request of {size} bytes, which is no Kafka request"
    if not is_known:
        return (
            f"before its login the client announced a request of {size} bytes, and {size_max} are"
            " allowed: its credentials are too large, or it is not set to log in"
        )
    return (
        f"the client announced a request of {size} bytes, more than socket.request.max.bytes"
        f" ({size_max}): raise that setting, or lower the client's max.request.size"
    )


_SIZE: Final = Struct(">i")
SIZE_BYTES: Final = _SIZE.size


class BadBytes(NamedTuple):
    """The reason to stop reading a stream: a sentence, its kind (for the log), and an answer."""

    reason: str
    kind: str = ""
    answer: bytes = b""


class RequestCutter:
    """The receiving half of one connection.

    Hot: the connection reads `start`, `position` and `view` itself, because a call for each of them
    would cost as much as cutting a small request.

    Invariants: `start <= position <= end`. Between two turns, unserved bytes are in `_kept`, or in
    the large request's own buffer if that request is complete. While a large request is being
    received, no other bytes are kept.
    """

    __slots__ = (
        "_accepted_bytes_max",
        "_kept",
        "_large",
        "_large_filled",
        "_receive_bytes_max",
        "_request_bytes_max",
        "_shared",
        "_shared_bytes_max",
        "bad_bytes",
        "end",
        "position",
        "start",
        "view",
    )

    def __init__(self, shared: memoryview, request_bytes_max: int) -> None:
        # The request that `advance` found is view[start:position]; the size prefix is before it.
        # view[position:end] holds the bytes received after it.
        self.view = shared
        self.start = self.position = self.end = 0
        # Set by `advance` if the bytes cannot be a request. After that no more requests are found.
        self.bad_bytes: BadBytes | None = None
        self._shared = shared
        # Larger requests get a buffer of their own.
        self._shared_bytes_max = len(shared) // 2
        # The bytes received but not served in the last turn.
        self._kept = b""
        self._request_bytes_max = request_bytes_max
        # The most bytes to receive at once; 0 means as many as fit in the buffer.
        self._receive_bytes_max = 0
        # 0 until the first bytes of the connection were checked for another protocol; then the
        # largest accepted request.
        self._accepted_bytes_max = 0
        # A request too large for the shared buffer, and how many of its bytes were received.
        self._large: memoryview | None = None
        self._large_filled = 0

    def limit(self, request_bytes_max: int, receive_bytes_max: int = 0) -> None:
        """Accept only requests of at most this many bytes, beginning with the next one.

        `receive_bytes_max` limits one receive, and thus the bytes kept, for a client that has not
        logged in; 0 means no limit.
        """
        self._request_bytes_max = request_bytes_max
        self._receive_bytes_max = receive_bytes_max
        if self._accepted_bytes_max:
            self._accepted_bytes_max = request_bytes_max

    # -- receiving

    def get_buffer(self) -> memoryview:
        """Return the buffer for the next bytes.

        Must not be called before a complete large request is served.
        """
        if self._large is not None:
            return self._large[self._large_filled :]
        kept = self._kept
        if self._receive_bytes_max:
            self._shared[: len(kept)] = kept
            return self._shared[len(kept) : len(kept) + self._receive_bytes_max]
        if not kept:
            return self._shared
        self._shared[: len(kept)] = kept
        return self._shared[len(kept) :]

    def received(self, count: int) -> None:
        """Note that `count` bytes were received into the buffer that `get_buffer` returned."""
        if self._large is not None:
            self._large_filled += count
            if self._large_filled == len(self._large):
                self.view, self.position, self.end = self._large, 0, self._large_filled
            return
        self.view = self._shared
        self.position = 0
        self.end = len(self._kept) + count
        self._kept = b""

    # -- cutting

    # Hot: once per request.
    def advance(self) -> int:
        """Move to the next whole request; return its size, or 0 if there is none."""
        start = self.position
        body = start + SIZE_BYTES
        if body > self.end:
            return 0
        size: int
        (size,) = _SIZE.unpack_from(self.view, start)
        if not 0 < size <= self._accepted_bytes_max and not self._is_acceptable(start, size):
            return 0
        position = body + size
        if position > self.end:
            return 0
        self.start = start
        self.position = position
        return size

    def take_back(self) -> None:
        """Go back before the current request, so that the next `advance` finds it again."""
        self.position = self.start

    def _is_acceptable(self, start: int, size: int) -> bool:
        foreign = foreign_protocol(bytes(self.view[start : start + SIZE_BYTES]))
        if foreign is not None:
            # A client that has already used Kafka's protocol would read this answer as a response.
            answer = b"" if self._accepted_bytes_max else foreign.answer
            self.bad_bytes = BadBytes(f"the client sent {foreign.what}", foreign.name, answer)
        elif 0 < size <= self._request_bytes_max:
            self._accepted_bytes_max = self._request_bytes_max
            return True
        else:
            why = explain_bad_size(
                size, self._request_bytes_max, is_known=not self._receive_bytes_max
            )
            self.bad_bytes = BadBytes(why, "size")
        return False

    # -- bytes that are not served in this turn

    def keep(self) -> int:
        """Save the unserved bytes, since other connections use the shared buffer after this turn.

        Return `large_bytes`.
        """
        if self._large is not None:
            return 0
        self._kept = self.view[self.position : self.end].tobytes()
        self.view = self._shared
        self.position = self.end = 0
        return self.large_bytes

    def return_to_kept(self) -> bool:
        """Continue with the bytes saved by `keep`; return False if there are none."""
        kept = self._kept
        if kept:
            # A bytearray, because requests are modified in place.
            self.view = memoryview(bytearray(kept))
            self.position, self.end = 0, len(kept)
            self._kept = b""
        return self.position < self.end

    # -- large requests

    @property
    def large_bytes(self) -> int:
        """Return the size of the buffer that the first kept request needs.

        0 means that the shared buffer suffices.
        """
        if len(self._kept) < SIZE_BYTES:
            return 0
        frame_bytes = int(_SIZE.unpack_from(self._kept)[0]) + SIZE_BYTES
        return frame_bytes if frame_bytes > self._shared_bytes_max else 0

    def begin_large(self, buffer: memoryview) -> None:
        """Use `buffer` for the large request that begins in the kept bytes."""
        assert len(self._kept) < len(buffer) == self.large_bytes
        buffer[: len(self._kept)] = self._kept
        self._large, self._large_filled = buffer, len(self._kept)
        self._kept = b""

    @property
    def is_large_served(self) -> bool:
        """Return whether the large request was received and found, so that its buffer is free."""
        return self.view is self._large and self.position == self.end

    @property
    def kept_bytes(self) -> int:
        """Return how many bytes `keep` saved in the last turn, not counting a large request."""
        return len(self._kept)

    @property
    def large_received(self) -> int:
        """Return how many bytes of the current large request have been received."""
        return self._large_filled

    def take_large(self) -> memoryview | None:
        """Abandon the large request, if there is one; return its buffer."""
        large, self._large, self._large_filled = self._large, None, 0
        if large is not None:
            self.view, self.position, self.end = self._shared, 0, 0
        return large
