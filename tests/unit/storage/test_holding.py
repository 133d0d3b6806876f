"""Laws of retention that waits for readers, and of the time that a reader has left."""

from ottla.storage.log.log import Log
from ottla.storage.log.retention import (
    NEVER,
    Hold,
    RetentionDeadline,
    Verdict,
    bytes_per_ms,
    deadline,
    hold,
)
from ottla.storage.segment.config import LogConfig

from .logs import append, open_log

SIZE = 261  # Of a batch with 200 bytes of records, which is a segment here.


def segments_of(*timestamps: int, **settings: int) -> Log:
    """A log with a segment of two records for each of the times, the last one active."""
    log = open_log(segment_bytes=300, **settings)
    for timestamp in timestamps:
        append(log, 2, payload=b"x" * 200, timestamp=timestamp)
    assert [segment.size for segment in log.segments] == [SIZE] * len(timestamps)
    return log


def held(log: Log, verdict: Verdict, read_to: int, now_ms: int = 10_000, **config: int) -> Hold:
    """What is held of it."""
    settings = LogConfig(retention_ms=1_000, **config)  # type: ignore[arg-type]
    return hold(
        log.segments.as_list(),
        verdict,
        read_to,
        settings,
        {},
        log_end_offset=log.log_end_offset,
        now_ms=now_ms,
    )


def test_what_was_read_goes_and_the_rest_stays() -> None:
    """A segment is held as long as one of its records was not read."""
    log = segments_of(1_000, 2_000, 3_000, 4_000)
    verdict = Verdict(3, 3)
    for read_to, goes in ((-1, 0), (0, 0), (1, 0), (2, 1), (3, 1), (4, 2), (6, 3), (8, 3)):
        assert held(log, verdict, read_to).count == goes, read_to
    assert held(log, verdict, 2) == Hold(1, 2 * SIZE, 3_000)


def test_what_lies_below_the_start_is_held_for_nobody() -> None:
    """Nobody can read it any more."""
    log = segments_of(1_000, 2_000, 3_000)
    assert held(log, Verdict(2, 2, by_start=1), -1) == Hold(1, SIZE, 3_000)


def test_no_more_than_so_many_bytes_are_held() -> None:
    """The oldest go first, and the setting is named."""
    log = segments_of(1_000, 2_000, 3_000, 4_000)
    found = held(log, Verdict(3, 3), 0, hold_max_bytes=2 * SIZE)
    setting = f"ottla.retention.hold.max.bytes={2 * SIZE}"
    assert found == Hold(1, 2 * SIZE, 3_000, setting)
    assert held(log, Verdict(3, 3), 0, hold_max_bytes=3 * SIZE).count == 0
    assert held(log, Verdict(3, 3), 0, hold_max_bytes=0) == Hold(
        3, setting="ottla.retention.hold.max.bytes=0"
    )


def test_nothing_is_held_for_longer_than_the_bound() -> None:
    """Counted from when its age would have let it go, whenever somebody looked first."""
    log = segments_of(1_000, 2_000, 3_000, 4_000)
    verdict = Verdict(3, 3)
    assert held(log, verdict, 0, now_ms=7_000, hold_max_ms=5_000).count == 0
    assert held(log, verdict, 0, now_ms=7_001, hold_max_ms=5_000) == Hold(
        1, 2 * SIZE, 3_000, "ottla.retention.hold.max.ms=5000"
    )


def test_what_only_its_size_lets_go_is_held_from_when_that_was_seen() -> None:
    """Nothing tells since when the log is too large."""
    log = segments_of(1_000, 2_000, 3_000)
    settings = LogConfig(retention_ms=-1, retention_bytes=SIZE, hold_max_ms=100)
    found = [
        hold(
            log.segments.as_list(),
            Verdict(2, 0),
            0,
            settings,
            {0: 50_000, 2: 50_000},
            log_end_offset=6,
            now_ms=now_ms,
        ).count
        for now_ms in (50_100, 50_101)
    ]
    assert found == [0, 2]


def left(log: Log, offset: int, *, now_ms: int, is_held: bool = False) -> RetentionDeadline:
    return deadline(
        log.segments.as_list(),
        log.config,
        offset,
        log_end_offset=log.log_end_offset,
        now_ms=now_ms,
        is_held=is_held,
    )


def test_a_record_has_until_its_segment_is_old() -> None:
    """By the newest record beside it; what is over is over."""
    log = segments_of(1_000, 2_000, 3_000, retention_ms=5_000)
    setting = "retention.ms=5000"
    assert left(log, 0, now_ms=3_000) == RetentionDeadline(3_000, setting)
    assert left(log, 3, now_ms=3_000) == RetentionDeadline(4_000, setting)
    assert left(log, 0, now_ms=60_000) == RetentionDeadline(0, setting)
    assert left(log, 6, now_ms=3_000) == NEVER


def test_a_record_has_until_enough_was_written_behind_it() -> None:
    """At the rate of the latest segments."""
    log = segments_of(1_000, 2_000, 3_000, retention_ms=-1, retention_bytes=4 * SIZE)
    assert bytes_per_ms(log.segments.as_list(), 4_000) == SIZE / 1_000
    assert left(log, 0, now_ms=4_000) == RetentionDeadline(2_000, f"retention.bytes={4 * SIZE}")
    assert left(log, 5, now_ms=4_000) == RetentionDeadline(4_000, f"retention.bytes={4 * SIZE}")
    full = segments_of(1_000, 2_000, 3_000, retention_ms=-1, retention_bytes=2 * SIZE)
    assert left(full, 0, now_ms=4_000).left_ms == 0


def test_the_nearer_of_both_counts() -> None:
    """And nothing where neither is set, or nothing is deleted."""
    both = segments_of(1_000, 2_000, retention_ms=5_000, retention_bytes=10 * SIZE)
    assert left(both, 0, now_ms=2_000).setting == "retention.ms=5000"
    assert left(segments_of(1_000, retention_ms=-1), 0, now_ms=2_000) == NEVER
    kept = open_log(cleanup_policy=frozenset({"compact"}), retention_ms=5_000)
    append(kept, 2)
    assert left(kept, 0, now_ms=2_000) == NEVER


def test_a_reader_that_is_waited_for_has_longer() -> None:
    """By the bound in time, or in bytes at the present rate, whichever is nearer."""
    log = segments_of(1_000, 2_000, 3_000, retention_ms=5_000, hold_max_ms=700)
    assert left(log, 0, now_ms=4_000, is_held=True).left_ms == 2_000 + 700
    log = segments_of(1_000, 2_000, retention_ms=5_000, hold_max_bytes=SIZE // 2 * 2)
    rate = 2 * SIZE / 2_000
    assert left(log, 0, now_ms=3_000, is_held=True).left_ms == 3_000 + round((SIZE // 2 * 2) / rate)


def test_an_empty_log_says_nothing_of_its_rate() -> None:
    """Nor does one whose records are of the future."""
    assert bytes_per_ms(open_log().segments.as_list(), 5) == 0
    assert bytes_per_ms(segments_of(9_000).segments.as_list(), 5) == 0
