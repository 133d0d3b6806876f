"""Says what it is, when the bytes on the port are not Kafka's protocol, and what to do about it."""

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


def foreign_protocol(head: bytes) -> str | None:
    """Name the protocol that `head`, the first bytes of a connection, belongs to, with a remedy.

    None where the bytes could be a Kafka request: four bytes of size, then the API key.
    """
    if head[:2] == _TLS_HANDSHAKE:
        return (
            "a TLS handshake on a plaintext listener: set security.protocol=PLAINTEXT in the"
            " client, or point it to a TLS listener"
        )
    if head[:4] in _HTTP_VERBS:
        return "an HTTP request: this port speaks Kafka's protocol, use a Kafka client"
    if head[:4] == b"SSH-":
        return "an SSH greeting: this port speaks Kafka's protocol, use a Kafka client"
    return None


def explain_bad_size(head: bytes, size: int, size_max: int) -> str:
    """Why a frame that begins with `head`, so claims `size` bytes, is refused: a sentence."""
    foreign = foreign_protocol(head)
    if foreign is not None:
        return f"the client sent {foreign}"
    if size <= 0:
        return f"the client sent a request of {size} bytes, which is no Kafka request"
    return (
        f"the client announced a request of {size} bytes, more than socket.request.max.bytes"
        f" ({size_max}): raise that setting, or lower the client's max.request.size"
    )
