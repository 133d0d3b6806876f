"""Recognises protocols other than Kafka's by their first bytes, and describes the remedy."""

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
    """Another protocol: its name, a description with a remedy, and an answer for its clients."""

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
