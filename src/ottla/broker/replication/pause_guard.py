"""Decides whether this process has read what arrived while it was paused. Pure."""

from ottla.replica.registration import NEVER

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
