"""The lake's one retry policy for temporary errors: each wait is longer, and a bit random.

The caller decides which errors are temporary, and the number of tries. The last error is raised
unchanged.
"""

import time
from collections.abc import Callable

from tenacity import Retrying, retry_if_exception, stop_after_attempt, wait_exponential, wait_random


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
