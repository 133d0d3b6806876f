"""AlterUserScramCredentials (key 51): set or remove SCRAM credentials (KIP-554).

Always flexible. The salted password is computed by the client.
"""

from ottla.wire.notation import Message, array, binary, int8, int16, int32, string


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
    """An AlterUserScramCredentials request."""

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
