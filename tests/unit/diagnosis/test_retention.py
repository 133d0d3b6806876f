"""What groups lose by retention, and when."""

from ottla.base.ids import TopicPartition
from ottla.client.admin.logs import RetentionStatus, TimeLeft
from ottla.diagnosis.retention import GroupLoss, ReaderStanding, in_words, loss_of, readers_of

HOUR_MS = 3_600_000


def standing(*left_ms: int | None, **readers: int) -> RetentionStatus:
    """A partition with offsets 100 to 250."""
    times = tuple(TimeLeft(100, left, "retention.ms") for left in left_ms)
    return RetentionStatus(
        TopicPartition("t", 0),
        broker_id=1,
        log_start_offset=100,
        log_end_offset=250,
        size_bytes=1_000,
        bytes_per_second=10.0,
        cleanup_policy="delete",
        retention_ms=HOUR_MS,
        retention_bytes=-1,
        hold_max_bytes=0,
        hold_max_ms=0,
        times_left=times,
        readers=readers,
        held_bytes=0,
        held_since_ms=-1,
    )


def test_a_group_behind_the_start_has_lost_what_lay_between() -> None:
    """And it loses the next record when that one's time is over."""
    loss = loss_of(standing(2 * HOUR_MS), 88)
    assert loss == GroupLoss(100, 12, 2 * HOUR_MS)
    assert loss.words == "12 deleted unread, in 2 hours"
    assert loss_of(standing(0), 100).words == "now"
    assert loss_of(standing(None), 200).words is None


def test_time_left_is_no_finer_than_minutes_once_there_are_some() -> None:
    """The brokers' estimate is no finer."""
    assert in_words(HOUR_MS + 5 * 60_000 + 1_234) == "in 1 hour 5 minutes"
    assert in_words(1_500) == "in 1 second 500 ms"
    assert in_words(0) == "now"


def test_a_reader_has_its_own_time_and_what_it_has_not_read() -> None:
    """The first time is the oldest record's; a reader behind the start reads on from there."""
    found = readers_of(standing(HOUR_MS, 0, None, audit=50, lake=-1))
    assert found == (
        ReaderStanding("audit", 50, 150, 0),
        ReaderStanding("lake", None, 150, None),
    )


def test_a_reader_without_a_time_is_left_out() -> None:
    """It was added after the times were asked for."""
    assert readers_of(standing(HOUR_MS, 0, audit=200, late=0)) == (
        ReaderStanding("audit", 200, 50, 0),
    )
