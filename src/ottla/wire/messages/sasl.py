"""The messages of SASL logins."""

from ottla.wire.notation import Message, array, binary, int16, int64, string


class SaslHandshakeRequest(Message, api_key=17, versions="0-1"):
    """SaslHandshake (key 17): choose a SASL mechanism.

    After version 0 the client sends its tokens as bare frames, after version 1 in SaslAuthenticate
    requests (KIP-152). No version is flexible, because old clients would misread the answer
    (KAFKA-9577).
    """

    mechanism: str = string()


class SaslHandshakeResponse(Message, api_key=17, versions="0-1"):
    """A SaslHandshake response."""

    error_code: int = int16()
    mechanisms: list[str] = array(string)


class SaslAuthenticateRequest(Message, api_key=36, versions="0-2", flexible="2+"):
    """SaslAuthenticate (key 36): one step of a SASL exchange.

    Version 1 adds the session's lifetime to the answer (KIP-368), 2 is flexible.
    """

    auth_bytes: bytes = binary()


class SaslAuthenticateResponse(Message, api_key=36, versions="0-2", flexible="2+"):
    """A SaslAuthenticate response."""

    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    auth_bytes: bytes = binary()
    session_lifetime_ms: int = int64("1+", ignorable=True)
