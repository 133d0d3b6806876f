"""Whether this process has read what arrived while it stood still. Pure."""

from ottla.replica.registration import NEVER

# How often in a row a pause may restart the listening. A process whose every turn takes so long
# reads between its pauses; without a limit a late follower would stay in the ISR for ever.
INTERRUPTIONS_MAX = 10


class PauseGuard:
    """A process that ran `pause_ms` late stood still; it then listens `listening_ms` long.

    A pause within the listening restarts it. Each timer that judges followers calls `on_ran` first:
    after a pause late timers run in the order of their deadlines, and any may be the first.
    """

    def __init__(self, now_ms: int, *, pause_ms: int, listening_ms: int) -> None:
        self._pause_ms = pause_ms
        self._listening_ms = listening_ms
        self._ran_ms = now_ms
        # Since when this process runs without a pause.
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
        """How long to listen yet before others may be judged; 0 if they may be now."""
        if self._interruptions > INTERRUPTIONS_MAX:
            return 0
        return max(0, self.awake_ms + self._listening_ms - self._ran_ms)
