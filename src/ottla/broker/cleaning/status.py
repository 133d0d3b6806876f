"""What is known of the compaction of one log: the last pass, its error, the wanted end."""

from dataclasses import dataclass

from ottla.storage.cleaner.job import CleaningOutcome

_FIRST_PAUSE_MS = 15_000
_LONGEST_PAUSE_MS = 3_600_000


@dataclass(slots=True)
class CleaningStatus:
    """Times in milliseconds since 1970, -1 for never."""

    passes: int = 0
    last: CleaningOutcome | None = None
    last_at_ms: int = -1
    is_running: bool = False
    # A request wants the log clean up to here now, whatever its dirty ratio.
    wanted_end: int = -1
    # Why the last attempt failed, and when to try again; empty where it succeeded.
    failure: str = ""
    failed_since_ms: int = -1
    attempts: int = 0
    retry_at_ms: int = -1
    pause_ms: int = _FIRST_PAUSE_MS

    def note_success(self, outcome: CleaningOutcome, now_ms: int) -> None:
        """Note a finished pass."""
        self.passes += 1
        self.last, self.last_at_ms = outcome, now_ms
        self.failure, self.failed_since_ms, self.attempts = "", -1, 0
        self.retry_at_ms, self.pause_ms = -1, _FIRST_PAUSE_MS
        if outcome.end >= self.wanted_end:
            self.wanted_end = -1

    def note_failure(self, why: str, now_ms: int) -> None:
        """Note a failed attempt: the next comes later, and each time later still."""
        self.failure = why
        self.attempts += 1
        if self.failed_since_ms < 0:
            self.failed_since_ms = now_ms
        self.retry_at_ms = now_ms + self.pause_ms
        self.pause_ms = min(self.pause_ms * 2, _LONGEST_PAUSE_MS)
        self.wanted_end = -1
