"""The state of a broker's cleaner as a value: passes, logs that wait, logs that fail and why."""

from dataclasses import dataclass

from ottla.base.ids import TopicPartition
from ottla.broker.cleaning.status import CleaningStatus
from ottla.storage.cleaner.job import CleaningOutcome


@dataclass(frozen=True, slots=True)
class CleanerHealth:
    """`last` is the last pass and when it ended; `failed` are logs whose last attempt failed.

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
