"""SaslHandshake (key 17): choose a SASL mechanism.

After version 0 the client sends its tokens as bare frames, after version 1 in SaslAuthenticate
(KIP-152). Neither version is flexible: old clients would misread the answer (KAFKA-9577).
"""

from ottla.wire.notation import Message, array, int16, string


class SaslHandshakeRequest(Message, api_key=17, versions="0-1"):
    """A SaslHandshake request."""

    mechanism: str = string()


class SaslHandshakeResponse(Message, api_key=17, versions="0-1"):
    """A SaslHandshake response."""

    error_code: int = int16()
    mechanisms: list[str] = array(string)
