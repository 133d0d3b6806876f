"""Limits how long a call is retried during outages, and when to report that. Pure."""

# An outage is reported after this time, if at least this much is left; shorter ones are not.
SAY_AFTER_S = 1.4
SAY_BEFORE_S = 3.0
# The time limit of the first connection attempt. Each further one has twice as long, so that a
# silent broker, or a silent cluster, is noticed at once.
SETUP_S = 2.0


class RetryPatience:
    """The retries of one call, or since the last answer of a stream."""

    def __init__(self, limit_s: float, now_s: float) -> None:
        self._limit_s = limit_s
        self._attempt = 0
        self._is_said = False
        self.heard(now_s)

    def heard(self, now_s: float) -> None:
        """Note an answer; the next wait has the full time again."""
        self._until_s = now_s + self._limit_s
        self._attempt = 0
        self._is_said = False

    def is_over(self, now_s: float) -> bool:
        """Whether a failure now is final."""
        return now_s >= self._until_s

    def failed(self) -> int:
        """Return the number of the failed attempt, from 0."""
        self._attempt += 1
        return self._attempt - 1

    def seconds_to_say(self, now_s: float) -> float | None:
        """Return the remaining seconds of retries, once per outage.

        None if nothing is to be reported.
        """
        left_s = self._until_s - now_s
        if self._is_said or self._limit_s - left_s < SAY_AFTER_S or left_s < SAY_BEFORE_S:
            return None
        self._is_said = True
        return left_s


def setup_limit_s(failures: int, most_s: float) -> float:
    """Return the time limit for connecting, after this many consecutive failures."""
    return min(most_s, SETUP_S * 2.0 ** min(failures, 10))
