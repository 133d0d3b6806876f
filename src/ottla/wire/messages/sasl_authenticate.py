"""SaslAuthenticate (key 36): one step of a SASL exchange.

Version 1 adds the session's lifetime to the answer (KIP-368), 2 is flexible.
"""

from ottla.wire.notation import Message, binary, int16, int64, string


class SaslAuthenticateRequest(Message, api_key=36, versions="0-2", flexible="2+"):
    """A SaslAuthenticate request."""

    auth_bytes: bytes = binary()


class SaslAuthenticateResponse(Message, api_key=36, versions="0-2", flexible="2+"):
    """A SaslAuthenticate response."""

    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    auth_bytes: bytes = binary()
    session_lifetime_ms: int = int64("1+", ignorable=True)
