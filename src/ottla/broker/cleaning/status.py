"""The state of a broker's cleaner, and of the compaction of one log."""

from dataclasses import dataclass

from ottla.base.ids import TopicPartition
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
    # A request asks for the log to be clean up to this offset, whatever its dirty ratio.
    wanted_end: int = -1
    # Why the last attempt failed, and when the next one is due; empty after a success.
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
        """Note a failed attempt: the pause before the next one doubles."""
        self.failure = why
        self.attempts += 1
        if self.failed_since_ms < 0:
            self.failed_since_ms = now_ms
        self.retry_at_ms = now_ms + self.pause_ms
        self.pause_ms = min(self.pause_ms * 2, _LONGEST_PAUSE_MS)
        self.wanted_end = -1


@dataclass(frozen=True, slots=True)
class CleanerStatus:
    """The state of a cleaner: passes, logs that wait, logs that fail and why.

    `last` is the last pass and when it ended; `failed` are logs whose last attempt failed.

    `logs` are compacted, `due` of them are dirty enough to be cleaned and hold `due_bytes` of
    dirt. Counts of passes and failures are since the broker started.
    """

    threads: int
    logs: int
    running: int
    due: int
    due_bytes: int
    passes: int
    failures: int
    last: tuple[TopicPartition, CleaningOutcome, int] | None
    failed: tuple[tuple[TopicPartition, CleaningStatus], ...]
