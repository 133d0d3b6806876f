"""ExpireDelegationToken (key 40): ends a token after a period, or at once (KIP-48).

Version 2 is flexible.
"""

from ottla.wire.notation import Message, binary, int16, int32, int64


class ExpireDelegationTokenRequest(Message, api_key=40, versions="1-2", flexible="2+"):
    """A ExpireDelegationToken request."""

    hmac: bytes = binary()
    expiry_time_period_ms: int = int64()


class ExpireDelegationTokenResponse(Message, api_key=40, versions="1-2", flexible="2+"):
    """A ExpireDelegationToken response."""

    error_code: int = int16()
    expiry_timestamp_ms: int = int64()
    throttle_time_ms: int = int32()
