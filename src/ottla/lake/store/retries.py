"""The lake's one retry policy for temporary errors: each wait is longer, and a bit random.

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
    """Return at most `tries` attempts to iterate over, each a context for one try.

    Errors of the types `passes` lead to the next attempt, all others end them.
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
