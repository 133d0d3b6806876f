"""Messages to read and change the SCRAM credentials of users."""

from ottla.wire.notation import Message, array, binary, int8, int16, int32, string


class UserName(Message):
    """An element of `DescribeUserScramCredentialsRequest.users`."""

    name: str = string()


class DescribeUserScramCredentialsRequest(Message, api_key=50, versions="0", flexible="0+"):
    """DescribeUserScramCredentials (key 50): list users with SCRAM, without secrets (KIP-554).

    Always flexible. Null means all users. Mechanism 1 is SHA-256, 2 is SHA-512.
    """

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


class ScramCredentialDeletion(Message):
    """An element of `AlterUserScramCredentialsRequest.deletions`."""

    name: str = string()
    mechanism: int = int8()


class ScramCredentialUpsertion(Message):
    """An element of `AlterUserScramCredentialsRequest.upsertions`."""

    name: str = string()
    mechanism: int = int8()
    iterations: int = int32()
    salt: bytes = binary()
    salted_password: bytes = binary()


class AlterUserScramCredentialsRequest(Message, api_key=51, versions="0", flexible="0+"):
    """AlterUserScramCredentials (key 51): set or remove SCRAM credentials (KIP-554).

    Always flexible. The client computes the salted password.
    """

    deletions: list[ScramCredentialDeletion] = array(ScramCredentialDeletion)
    upsertions: list[ScramCredentialUpsertion] = array(ScramCredentialUpsertion)


class AlterUserScramCredentialsResult(Message):
    """An element of `AlterUserScramCredentialsResponse.results`."""

    user: str = string()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")


class AlterUserScramCredentialsResponse(Message, api_key=51, versions="0", flexible="0+"):
    """An AlterUserScramCredentials response."""

    throttle_time_ms: int = int32()
    results: list[AlterUserScramCredentialsResult] = array(AlterUserScramCredentialsResult)
