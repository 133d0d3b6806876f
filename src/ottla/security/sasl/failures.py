"""Failed logins, and the delay of their answers, which grows for users that fail often.

Failures are counted by claimed user, existing or not, and address: a client at the same gateway
learns its own reason without waiting for the failures of another. `quota.failing_addresses` limits
the attempts of one address.
"""

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.fairness import counted_address

# A user without a failure for this long is forgotten.
_FORGOTTEN_MS = 60_000
_DELAY_MS_MAX = 5_000
# Users that are remembered; the one that failed longest ago is forgotten for a new one.
_REMEMBERED_MAX = 10_000
_NAME_CHARACTERS_MAX = 100


class FailedLogins:
    """Counts failures per user and address. Times are ms of a clock that never goes back."""

    def __init__(self, delay_ms: int) -> None:
        """Create the counter.

        `delay_ms` delays the first failures; from the third on it doubles each time.
        """
        self.count = 0
        self._delay_ms = delay_ms
        # Consecutive failures, and the time of the last one; the most recent entry is the last.
        self._failed: dict[tuple[str, str], tuple[int, int]] = {}

    def failed(self, address: str, user: str, now_ms: int) -> int:
        """Count a failure; return how many milliseconds to delay its answer."""
        self.count += 1
        key = counted_address(address), user[:_NAME_CHARACTERS_MAX]
        failures, last_ms = self._failed.pop(key, (0, now_ms))
        if now_ms - last_ms > _FORGOTTEN_MS:
            failures = 0
        while len(self._failed) >= _REMEMBERED_MAX:
            del self._failed[next(iter(self._failed))]
        self._failed[key] = failures + 1, now_ms
        # A client learns the reason of its first five attempts within a second.
        doubled = self._delay_ms << min(max(0, failures - 1), 16)
        return max(self._delay_ms, min(doubled, _DELAY_MS_MAX))


class AuthenticationFailed(OttlaError):
    """A failed login. The message is for the client; `cause` is for the log, without secrets.

    Failures of the same `kind` are logged at intervals, so `kind` must not contain text chosen by a
    client. `claimed` is the user that the client claimed; `is_known` says that the user exists and
    the password was wrong.
    """

    kind = "failed"
    claimed = ""
    is_known = False

    def __init__(self, mechanism: str, cause: str, kind: str = "") -> None:
        # The same words for every cause, because they must not reveal whether a user exists.
        super().__init__(
            ErrorCode.SASL_AUTHENTICATION_FAILED,
            "Authentication failed during authentication due to invalid credentials with SASL "
            f"mechanism {mechanism}",
        )
        self.cause = f"{mechanism}: {cause}"
        self.kind = f"{mechanism} {kind or self.kind}"


class MalformedExchange(AuthenticationFailed):
    """The client's message is invalid for this mechanism and step."""

    kind = "malformed"
