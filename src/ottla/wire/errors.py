"""The errors of invalid bytes from a peer, and of messages that a version cannot hold."""

from ottla.base.errors import ErrorCode, OttlaError


class WireError(OttlaError):
    """The bytes are no message: truncated, or with impossible lengths (INVALID_REQUEST)."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.INVALID_REQUEST, message)


class TooManyElements(WireError):
    """The lists of a request have more elements than allowed."""


class TooManyBytes(WireError):
    """A response is larger than allowed."""


class VersionError(OttlaError):
    """The message lacks the version, or the version cannot hold a value (UNSUPPORTED_VERSION)."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.UNSUPPORTED_VERSION, message)
