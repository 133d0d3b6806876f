"""How long a call is tried again while brokers or leaders are away, and when that is said. Pure."""

# After so long, where so much is left: shorter outages are no news, and an error ends them soon.
SAY_AFTER_S = 1.4
SAY_BEFORE_S = 3.0
# How long the first try to set up a connection may take. Each further one has twice as long, so
# that one broker of several that is silent, or a silent cluster, is noticed at once.
SETUP_S = 2.0


class RetryPatience:
    """One call, or the time since a stream of answers gave its last one."""

    def __init__(self, limit_s: float, now_s: float) -> None:
        self._limit_s = limit_s
        self._attempt = 0
        self._is_said = False
        self.heard(now_s)

    def heard(self, now_s: float) -> None:
        """An answer came: what is waited for next has all of the time."""
        self._until_s = now_s + self._limit_s
        self._attempt = 0
        self._is_said = False

    def is_over(self, now_s: float) -> bool:
        """Whether a failure now is final."""
        return now_s >= self._until_s

    def failed(self) -> int:
        """The number of the attempt that failed, from 0."""
        self._attempt += 1
        return self._attempt - 1

    def seconds_to_say(self, now_s: float) -> float | None:
        """How long it will be tried yet, once in each wait; None where nothing is to be said."""
        left_s = self._until_s - now_s
        if self._is_said or self._limit_s - left_s < SAY_AFTER_S or left_s < SAY_BEFORE_S:
            return None
        self._is_said = True
        return left_s


def setup_limit_s(failures: int, most_s: float) -> float:
    """How long a connection may take to be set up, after so many failures in a row."""
    return min(most_s, SETUP_S * 2.0 ** min(failures, 10))
