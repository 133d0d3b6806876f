"""The lake's retry policy for temporary errors: exponential backoff with jitter.

The caller decides which errors are temporary, and the number of tries. The last error is raised
unchanged.
"""

import time
from collections.abc import Callable

from tenacity import Retrying, retry_if_exception, stop_after_attempt, wait_exponential, wait_random

from ottla.base.errors import ErrorCode, OttlaError
from ottla.lake.store.store import PutUnknown, StoreUnreachable


def retried(
    tries: int,
    passes: type[BaseException] | tuple[type[BaseException], ...],
    *,
    first_s: float = 0.01,
    longest_s: float = 0.2,
    sleep: Callable[[float], None] = time.sleep,
) -> Retrying:
    """Return an iterator over at most `tries` attempts. Each is the context of one try.

    An error of the types `passes` leads to the next attempt; any other error is raised.
    """
    return Retrying(
        stop=stop_after_attempt(tries),
        retry=retry_if_exception(lambda error: isinstance(error, passes)),
        wait=wait_exponential(first_s, longest_s) + wait_random(0, first_s),
        sleep=sleep,
        reraise=True,
    )


_TRIES = 3


def put_until_known(
    address: str, content: bytes, put: Callable[[], bool], read: Callable[[], bytes]
) -> bool:
    """Retry a conditional PUT until it is known which writer wrote the file.

    `put` returns False if the name exists, which an earlier try of this call may have created.
    `read` returns the file's content. Raises as `put_if_absent` does.
    """
    unknown: Exception | None = None
    for attempt in retried(_TRIES, PutUnknown):
        with attempt:
            try:
                if put():
                    return True
            except (OSError, OttlaError) as error:
                # After any error but StoreUnreachable, the file was not written.
                if unknown is None and not isinstance(error, StoreUnreachable):
                    raise
                unknown = error
            try:
                return read() == content
            except FileNotFoundError:
                # The file does not exist yet. The next try finds it or writes it.
                unknown = unknown or FileNotFoundError(address)
            except (OSError, OttlaError) as error:
                unknown = error
            raise PutUnknown(
                ErrorCode.KAFKA_STORAGE_ERROR,
                f"it is not known whether {address} was written ({unknown}); see that the "
                "store can be reached, then run this again: what was committed is not done twice",
            ) from unknown
    raise AssertionError("the last attempt returns or raises")
