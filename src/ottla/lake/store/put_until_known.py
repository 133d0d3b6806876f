"""A conditional PUT whose answer may be lost: it is retried until the name's owner is known."""

from collections.abc import Callable

from ottla.base.errors import ErrorCode, OttlaError
from ottla.lake.store.retries import retried
from ottla.lake.store.store import PutUnknown

_TRIES = 3


class StoreUnreachable(OttlaError):
    """Raised if the store gave no answer, or none that says whether the request was done."""


def put_until_known(
    address: str, content: bytes, put: Callable[[], bool], read: Callable[[], bytes]
) -> bool:
    """Retry a conditional PUT until it is known which writer has the name.

    Raises as `put_if_absent` does. `put` returns False if the name is taken; an earlier try of ours
    may have taken it.
    """
    unknown: Exception | None = None
    for attempt in retried(_TRIES, PutUnknown):
        with attempt:
            try:
                if put():
                    return True
            except (OSError, OttlaError) as error:
                # Only an unreachable store may have written the file.
                if unknown is None and not isinstance(error, StoreUnreachable):
                    raise
                unknown = error
            try:
                return read() == content
            except FileNotFoundError:
                # The file is not there, or not yet: the next try finds it or writes it.
                unknown = unknown or FileNotFoundError(address)
            except (OSError, OttlaError) as error:
                unknown = error
            raise PutUnknown(
                ErrorCode.KAFKA_STORAGE_ERROR,
                f"it is not known whether {address} was written ({unknown}); see that the "
                "store can be reached, then run this again: what was committed is not done twice",
            ) from unknown
    raise AssertionError("the last attempt returns or raises")
