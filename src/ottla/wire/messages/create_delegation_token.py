"""CreateDelegationToken (key 38): makes a token by which clients log in as its owner (KIP-48).

Version 2 is flexible, 3 adds the owner, who may be another than the requester (KIP-373).
"""

from ottla.wire.notation import Message, array, binary, int16, int32, int64, string


class CreatableRenewers(Message):
    """An element of `CreateDelegationTokenRequest.renewers`."""

    principal_type: str = string()
    principal_name: str = string()


class CreateDelegationTokenRequest(Message, api_key=38, versions="1-3", flexible="2+"):
    """A CreateDelegationToken request."""

    owner_principal_type: str | None = string("3+", nullable="3+")
    owner_principal_name: str | None = string("3+", nullable="3+")
    renewers: list[CreatableRenewers] = array(CreatableRenewers)
    max_lifetime_ms: int = int64()


class CreateDelegationTokenResponse(Message, api_key=38, versions="1-3", flexible="2+"):
    """A CreateDelegationToken response."""

    error_code: int = int16()
    principal_type: str = string()
    principal_name: str = string()
    token_requester_principal_type: str = string("3+", ignorable=True)
    token_requester_principal_name: str = string("3+", ignorable=True)
    issue_timestamp_ms: int = int64()
    expiry_timestamp_ms: int = int64()
    max_timestamp_ms: int = int64()
    token_id: str = string()
    hmac: bytes = binary()
    throttle_time_ms: int = int32()
