"""Limits for lagging and silent followers, and detection of pauses of this process. Pure."""

from typing import NamedTuple

from ottla.base.settings import BrokerSettings
from ottla.replica.registration import NEVER

# The number of checks within the longest silence allowed to a follower.
_LOOKS = 20


class LagLimits(NamedTuple):
    """Limits in milliseconds. `look_every_ms` is the interval between checks of the followers."""

    lag_ms_max: int
    silence_ms_max: int
    look_every_ms: float


def lag_limits(settings: BrokerSettings) -> LagLimits:
    """Compute the limits from the broker's settings."""
    lag_ms_max = settings.integer("replica.lag.time.max.ms")
    silence_ms_max = _silence_ms_max(
        settings.integer("broker.session.timeout.ms"),
        settings.integer("replica.fetch.wait.max.ms"),
    )
    look_every_ms = lag_ms_max / 2
    if silence_ms_max < lag_ms_max:
        look_every_ms = min(look_every_ms, silence_ms_max / _LOOKS)
    return LagLimits(lag_ms_max, silence_ms_max, max(look_every_ms, 1.0))


def _silence_ms_max(session_ms: int, wait_ms_max: int) -> int:
    """Return the longest silence: three quarters of the session timeout, or more for long fetches.

    The last fetch received may wait here for `wait_ms_max`; then half of the three quarters remain
    for the follower to send the next one. The time is shorter than the session timeout, because a
    broker that is cut off keeps its session until the store ends it, and clients then need time to
    find the next leader.
    """
    silence_ms = session_ms * 3 // 4
    return silence_ms + max(0, wait_ms_max - silence_ms // 2)


# How many pauses in a row may restart the time for reading requests. If every turn of the loop is
# that slow, the process still reads requests between them. Without a limit, no late follower would
# ever leave the ISR.
INTERRUPTIONS_MAX = 10


class PauseGuard:
    """Detects pauses of this process; after one, requests are read before followers are judged.

    The process was paused if more than `pause_ms` pass between two timers. It then reads requests
    for `listening_ms`; another pause restarts that time. Each timer that judges followers calls
    `on_ran` first, because any of the late timers may run first after a pause.
    """

    def __init__(self, now_ms: int, *, pause_ms: int, listening_ms: int) -> None:
        self._pause_ms = pause_ms
        self._listening_ms = listening_ms
        self._ran_ms = now_ms
        # The time since which this process has run without a pause.
        self.awake_ms = NEVER
        self._interruptions = 0

    def on_ran(self, now_ms: int) -> None:
        """Detect a pause since the last call; each timer that judges followers calls this first."""
        before_ms, self._ran_ms = self._ran_ms, now_ms
        if before_ms - self.awake_ms >= self._listening_ms:
            self._interruptions = 0
        if now_ms - before_ms > self._pause_ms:
            self._interruptions += 1
            self.awake_ms = now_ms

    def left_ms(self) -> int:
        """Milliseconds to go on reading requests before judging followers; 0 to judge them now."""
        if self._interruptions > INTERRUPTIONS_MAX:
            return 0
        return max(0, self.awake_ms + self._listening_ms - self._ran_ms)
