"""Messages to create, renew, expire and list delegation tokens."""

from ottla.wire.notation import Message, array, binary, int16, int32, int64, string


class TokenPrincipal(Message):
    """A user as the owner or a renewer of tokens."""

    principal_type: str = string()
    principal_name: str = string()


class CreateDelegationTokenRequest(Message, api_key=38, versions="1-3", flexible="2+"):
    """CreateDelegationToken (key 38): create a token by which clients log in as its owner (KIP-48).

    Version 2 is flexible, 3 adds the owner, who may be a user other than the requester (KIP-373).
    """

    owner_principal_type: str | None = string("3+", nullable="3+")
    owner_principal_name: str | None = string("3+", nullable="3+")
    renewers: list[TokenPrincipal] = array(TokenPrincipal)
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


class RenewDelegationTokenRequest(Message, api_key=39, versions="1-2", flexible="2+"):
    """RenewDelegationToken (key 39): extend a token's validity, within its lifetime (KIP-48).

    Version 2 is flexible.
    """

    hmac: bytes = binary()
    renew_period_ms: int = int64()


class RenewDelegationTokenResponse(Message, api_key=39, versions="1-2", flexible="2+"):
    """A RenewDelegationToken response."""

    error_code: int = int16()
    expiry_timestamp_ms: int = int64()
    throttle_time_ms: int = int32()


class ExpireDelegationTokenRequest(Message, api_key=40, versions="1-2", flexible="2+"):
    """ExpireDelegationToken (key 40): let a token expire after a period, or at once (KIP-48).

    Version 2 is flexible.
    """

    hmac: bytes = binary()
    expiry_time_period_ms: int = int64()


class ExpireDelegationTokenResponse(Message, api_key=40, versions="1-2", flexible="2+"):
    """A ExpireDelegationToken response."""

    error_code: int = int16()
    expiry_timestamp_ms: int = int64()
    throttle_time_ms: int = int32()


class DescribeDelegationTokenRequest(Message, api_key=41, versions="1-3", flexible="2+"):
    """DescribeDelegationToken (key 41): list the tokens of some or all owners, with HMACs (KIP-48).

    Version 2 is flexible, 3 adds the requester of each token (KIP-373).
    """

    owners: list[TokenPrincipal] | None = array(TokenPrincipal, nullable="0+")


class DescribedDelegationToken(Message):
    """An element of `DescribeDelegationTokenResponse.tokens`."""

    principal_type: str = string()
    principal_name: str = string()
    token_requester_principal_type: str = string("3+", ignorable=True)
    token_requester_principal_name: str = string("3+", ignorable=True)
    issue_timestamp: int = int64()
    expiry_timestamp: int = int64()
    max_timestamp: int = int64()
    token_id: str = string()
    hmac: bytes = binary()
    renewers: list[TokenPrincipal] = array(TokenPrincipal)


class DescribeDelegationTokenResponse(Message, api_key=41, versions="1-3", flexible="2+"):
    """A DescribeDelegationToken response."""

    error_code: int = int16()
    tokens: list[DescribedDelegationToken] = array(DescribedDelegationToken)
    throttle_time_ms: int = int32()
