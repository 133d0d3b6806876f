"""How `ottla cluster health` shows the brokers' log cleaners."""

from ottla.base.ids import TopicPartition
from ottla.cli.cluster import cleaner_line, cleaner_row
from ottla.client.admin.compaction import CleanerStatus

MINUTE_MS = 60_000


def standing(*, logs: int = 2, due: int = 0) -> CleanerStatus:
    last = TopicPartition("planes", 1)
    return CleanerStatus(3, 1, logs, 0, due, 700 * due, 5, 0, last, MINUTE_MS, 1_250, ())


def test_a_cleaner_is_one_line() -> None:
    """None where there is nothing to compact."""
    assert cleaner_line(standing(due=2)) == (
        "cleaner of broker 3: 2 logs, 0 being compacted, 2 due (1,400 bytes), last pass planes-1 "
        "at 1970-01-01T00:01:00.000Z in 1.2 s"
    )
    assert cleaner_line(standing(logs=0)) is None
    assert cleaner_row(standing())["last_pass"] == {
        "partition": "planes-1",
        "at": "1970-01-01T00:01:00.000Z",
        "elapsed_ms": 1250,
    }
