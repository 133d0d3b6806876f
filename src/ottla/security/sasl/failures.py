"""How a login fails, and how long its answer is delayed: longer for a user that fails often.

Failures count for the user that a login names, whether there is such a user or not, at its address:
a client behind the same gateway learns its own reason without waiting for the mistakes of another.
What one address may try in all, `quota.failing_addresses` bounds.
"""

from ottla.base.addresses import counted_address
from ottla.base.errors import ErrorCode, OttlaError

# A user that has not failed for so long is forgotten.
_FORGOTTEN_MS = 60_000
_DELAY_MS_MAX = 5_000
# Users that are remembered; the one that failed longest ago is forgotten for a new one.
_REMEMBERED_MAX = 10_000
_NAME_CHARACTERS_MAX = 100


class FailedLogins:
    """Counts failures per user and address. Times are ms of a clock that never goes back."""

    def __init__(self, delay_ms: int) -> None:
        """`delay_ms` is that of the first failures; from the third on it doubles with each."""
        self.count = 0
        self._delay_ms = delay_ms
        # Failures in a row, and when the last one was; the latest is the last.
        self._failed: dict[tuple[str, str], tuple[int, int]] = {}

    def failed(self, address: str, user: str, now_ms: int) -> int:
        """Count a failure: for how many milliseconds its answer is to be delayed."""
        self.count += 1
        key = counted_address(address), user[:_NAME_CHARACTERS_MAX]
        failures, last_ms = self._failed.pop(key, (0, now_ms))
        if now_ms - last_ms > _FORGOTTEN_MS:
            failures = 0
        while len(self._failed) >= _REMEMBERED_MAX:
            del self._failed[next(iter(self._failed))]
        self._failed[key] = failures + 1, now_ms
        # A client's first five tries learn their reason within a second.
        doubled = self._delay_ms << min(max(0, failures - 1), 16)
        return max(self._delay_ms, min(doubled, _DELAY_MS_MAX))


class AuthenticationFailed(OttlaError):
    """The message is for the client; `cause` is for the broker's log and has no secret in it.

    Failures of the same `kind` stand in the log once in a while. It has nothing in it that a
    client can choose freely. `claimed` is the user that the client named, and `is_known` whether
    there is one and the password was wrong.
    """

    kind = "failed"
    claimed = ""
    is_known = False

    def __init__(self, mechanism: str, cause: str, kind: str = "") -> None:
        # The same words for every cause: they must not say whether a user exists.
        super().__init__(
            ErrorCode.SASL_AUTHENTICATION_FAILED,
            "Authentication failed during authentication due to invalid credentials with SASL "
            f"mechanism {mechanism}",
        )
        self.cause = f"{mechanism}: {cause}"
        self.kind = f"{mechanism} {kind or self.kind}"


class MalformedExchange(AuthenticationFailed):
    """The client's message is not one of this mechanism at this step."""

    kind = "malformed"
