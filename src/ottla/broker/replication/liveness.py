"""Decides when followers count as late, and whether this process was paused. Pure."""

from typing import NamedTuple

from ottla.base.settings import BrokerSettings
from ottla.replica.registration import NEVER

# How often followers are checked within the time that they may be silent.
_LOOKS = 20


class LagLimits(NamedTuple):
    """Limits in milliseconds. `look_every_ms` is the interval between checks of the followers."""

    lag_ms_max: int
    silence_ms_max: int
    look_every_ms: float


def lag_limits(settings: BrokerSettings) -> LagLimits:
    """The limits that follow from the broker's settings."""
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
    """The longest silence: three quarters of a session, half of it for a fetch after an answer.

    What was heard last is the fetch before that, which may have waited here so long. It is less
    than a session: a broker that is cut off keeps its session until its store has missed it, and
    clients have yet to find the next leader.
    """
    silence_ms = session_ms * 3 // 4
    return silence_ms + max(0, wait_ms_max - silence_ms // 2)


# How many pauses in a row may restart the catch-up time. A process whose every turn takes that long
# reads between its pauses; without a limit a late follower would never leave the ISR.
INTERRUPTIONS_MAX = 10


class PauseGuard:
    """A process that runs `pause_ms` late was paused; it then reads for `listening_ms`.

    A pause within the listening restarts it. Each timer that judges followers calls `on_ran` first:
    after a pause late timers run in the order of their deadlines, and any may be the first.
    """

    def __init__(self, now_ms: int, *, pause_ms: int, listening_ms: int) -> None:
        self._pause_ms = pause_ms
        self._listening_ms = listening_ms
        self._ran_ms = now_ms
        # The time since which this process has run without a pause.
        self.awake_ms = NEVER
        self._interruptions = 0

    def on_ran(self, now_ms: int) -> None:
        """Note that a timer of this process runs."""
        before_ms, self._ran_ms = self._ran_ms, now_ms
        if before_ms - self.awake_ms >= self._listening_ms:
            self._interruptions = 0
        if now_ms - before_ms > self._pause_ms:
            self._interruptions += 1
            self.awake_ms = now_ms

    def left_ms(self) -> int:
        """Milliseconds to read before followers may be judged; 0 if they may be judged now."""
        if self._interruptions > INTERRUPTIONS_MAX:
            return 0
        return max(0, self.awake_ms + self._listening_ms - self._ran_ms)
