"""What is found wrong with the brokers' log cleaners."""

from ottla.base.ids import TopicPartition
from ottla.client.admin.compaction import CleanerStatus, FailedCleaning
from ottla.diagnosis.cluster import cleaner_findings

MINUTE_MS = 60_000


def standing(
    *, threads: int = 1, logs: int = 2, due: int = 0, failed: tuple[FailedCleaning, ...] = ()
) -> CleanerStatus:
    last = TopicPartition("planes", 1)
    return CleanerStatus(3, threads, logs, 0, due, 700 * due, 5, 0, last, MINUTE_MS, 1_250, failed)


def test_a_cleaner_that_does_its_work_is_no_finding() -> None:
    """Nor is one that is switched off and has nothing to compact."""
    assert cleaner_findings([standing(due=1), standing(threads=0, logs=0)]) == []


def test_logs_that_cannot_be_cleaned_are_one_finding_per_reason() -> None:
    """With the reason, since when, and when it is tried again."""
    failed = tuple(
        FailedCleaning(TopicPartition("planes", index), why, 1 + index, MINUTE_MS, 3 * MINUTE_MS)
        for index, why in enumerate(("no room", "no room", "damaged"))
    )
    full, damaged = cleaner_findings([standing(failed=failed)])
    assert (full.trouble, full.partitions) == (
        "not compacted",
        (TopicPartition("planes", 0), TopicPartition("planes", 1)),
    )
    assert full.cause == (
        "broker 3 fails since 1970-01-01T00:01:00.000Z, 2 times in a row: no room"
    )
    assert "at 1970-01-01T00:03:00.000Z" in full.remedy
    assert damaged.cause.endswith("3 times in a row: damaged")


def test_a_cleaner_that_is_switched_off_is_a_finding_where_logs_wait_for_it() -> None:
    """They would grow for ever."""
    (finding,) = cleaner_findings([standing(threads=0)])
    assert "broker 3 compacts nothing, and 2 logs" in finding.cause
    assert "log.cleaner.enable" in finding.remedy
