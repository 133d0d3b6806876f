"""DescribeDelegationToken (key 41): the tokens of some owners, or all, with their HMACs (KIP-48).

Version 2 is flexible, 3 adds the requester of each token (KIP-373).
"""

from ottla.wire.notation import Message, array, binary, int16, int32, int64, string


class DescribeDelegationTokenOwner(Message):
    """An element of `DescribeDelegationTokenRequest.owners`."""

    principal_type: str = string()
    principal_name: str = string()


class DescribeDelegationTokenRequest(Message, api_key=41, versions="1-3", flexible="2+"):
    """A DescribeDelegationToken request."""

    owners: list[DescribeDelegationTokenOwner] | None = array(
        DescribeDelegationTokenOwner, nullable="0+"
    )


class DescribedDelegationTokenRenewer(Message):
    """An element of `DescribedDelegationToken.renewers`."""

    principal_type: str = string()
    principal_name: str = string()


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
    renewers: list[DescribedDelegationTokenRenewer] = array(DescribedDelegationTokenRenewer)


class DescribeDelegationTokenResponse(Message, api_key=41, versions="1-3", flexible="2+"):
    """A DescribeDelegationToken response."""

    error_code: int = int16()
    tokens: list[DescribedDelegationToken] = array(DescribedDelegationToken)
    throttle_time_ms: int = int32()
