"""RenewDelegationToken (key 39): moves the end of a token, within its lifetime (KIP-48).

Version 2 is flexible.
"""

from ottla.wire.notation import Message, binary, int16, int32, int64


class RenewDelegationTokenRequest(Message, api_key=39, versions="1-2", flexible="2+"):
    """A RenewDelegationToken request."""

    hmac: bytes = binary()
    renew_period_ms: int = int64()


class RenewDelegationTokenResponse(Message, api_key=39, versions="1-2", flexible="2+"):
    """A RenewDelegationToken response."""

    error_code: int = int16()
    expiry_timestamp_ms: int = int64()
    throttle_time_ms: int = int32()
