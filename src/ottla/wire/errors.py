"""The errors for invalid bytes from the other side, and for values that a version lacks."""

from ottla.base.errors import ErrorCode, OttlaError


class WireError(OttlaError):
    """The bytes are not a valid message, for example truncated (INVALID_REQUEST)."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.INVALID_REQUEST, message)


class TooManyElements(WireError):
    """The lists of a request have more elements than is allowed."""


class TooManyBytes(WireError):
    """A response is larger than is allowed."""


class VersionError(OttlaError):
    """The version is unknown, or it cannot represent a value (UNSUPPORTED_VERSION)."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.UNSUPPORTED_VERSION, message)
