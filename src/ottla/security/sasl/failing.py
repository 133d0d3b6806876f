"""How a SASL exchange fails."""

from ottla.base.errors import ErrorCode, OttlaError


class AuthenticationFailed(OttlaError):
    """The message is for the client; `cause` is for the broker's log and has no secret in it.

    Failures of the same `kind` stand in the log once in a while. It has nothing in it that a
    client can choose freely. `claimed` is the user that the client named, and `is_known` whether
    there is one and the password was wrong.
    """

    kind = "failed"
    claimed = ""
    is_known = False

    def __init__(self, mechanism: str, cause: str, kind: str = "") -> None:
        # The same words for every cause: they must not say whether a user exists.
        super().__init__(
            ErrorCode.SASL_AUTHENTICATION_FAILED,
            "Authentication failed during authentication due to invalid credentials with SASL "
            f"mechanism {mechanism}",
        )
        self.cause = f"{mechanism}: {cause}"
        self.kind = f"{mechanism} {kind or self.kind}"


class MalformedExchange(AuthenticationFailed):
    """The client's message is not one of this mechanism at this step."""

    kind = "malformed"
