"""DescribeUserScramCredentials (key 50): users with SCRAM credentials, without secrets (KIP-554).

Always flexible. Null means all users. Mechanisms: 1 SHA-256, 2 SHA-512.
"""

from ottla.wire.notation import Message, array, int8, int16, int32, string


class UserName(Message):
    """An element of `DescribeUserScramCredentialsRequest.users`."""

    name: str = string()


class DescribeUserScramCredentialsRequest(Message, api_key=50, versions="0", flexible="0+"):
    """A DescribeUserScramCredentials request."""

    users: list[UserName] | None = array(UserName, nullable="0+")


class CredentialInfo(Message):
    """An element of `DescribeUserScramCredentialsResult.credential_infos`."""

    mechanism: int = int8()
    iterations: int = int32()


class DescribeUserScramCredentialsResult(Message):
    """An element of `DescribeUserScramCredentialsResponse.results`."""

    user: str = string()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    credential_infos: list[CredentialInfo] = array(CredentialInfo)


class DescribeUserScramCredentialsResponse(Message, api_key=50, versions="0", flexible="0+"):
    """A DescribeUserScramCredentials response."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    results: list[DescribeUserScramCredentialsResult] = array(DescribeUserScramCredentialsResult)
