"""What can be wrong with bytes from a peer, and with a message for an old version."""

from ottla.base.errors import ErrorCode, OttlaError


class WireError(OttlaError):
    """Bytes that are no message: cut off, or with lengths that cannot be (INVALID_REQUEST)."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.INVALID_REQUEST, message)


class TooManyElements(WireError):
    """More elements, in all lists of a request, than it may have."""


class TooManyBytes(WireError):
    """A response is larger than it may be."""


class VersionError(OttlaError):
    """A version the message does not have, or a value it cannot hold (UNSUPPORTED_VERSION)."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.UNSUPPORTED_VERSION, message)
