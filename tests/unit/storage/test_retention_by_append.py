"""Retention that counts from the arrival of records, whatever their timestamps say."""

from dataclasses import replace

import pytest

from ottla.ledger.files import decode_history, encode_history
from ottla.ledger.history import EVIDENCE_MAX, Evidence, History
from ottla.storage.disk.memory_filesystem import MemoryFileSystem
from ottla.storage.log.log import Log
from ottla.storage.log.retention import deadline, delete_old_segments, old_segments

from .logs import append, open_log

DAY = 86_400_000


class Clock:
    now_ms = 0


def filled(clock: Clock, *arrivals: tuple[int, int], by_append: bool = True) -> Log:
    """A log with a segment for each (arrival, timestamp); the last one is active."""
    log = open_log(
        MemoryFileSystem(now_ms=lambda: clock.now_ms),
        segment_bytes=300,
        retention_ms=7 * DAY,
        retention_by_append=by_append,
    )
    for arrived_ms, timestamp in arrivals:
        clock.now_ms = arrived_ms
        append(log, 2, payload=b"x" * 200, timestamp=timestamp)
    assert len(log.segments) == len(arrivals)
    return log


def gone(log: Log, now_ms: int) -> int:
    return old_segments(log, now_ms, log.log_end_offset).count


def test_old_and_future_timestamps_neither_shorten_nor_lengthen_a_life() -> None:
    """A record goes when it has been here for retention.ms; by timestamps it does not."""
    arrivals = ((100 * DAY, 10 * DAY), (101 * DAY, 900 * DAY), (102 * DAY, 102 * DAY))
    log = filled(Clock(), *arrivals)
    assert gone(log, 107 * DAY) == 0
    assert gone(log, 107 * DAY + 1) == 1
    assert gone(log, 108 * DAY + 1) == 2
    fooled = filled(Clock(), *arrivals, by_append=False)
    assert gone(fooled, 102 * DAY) == 1
    assert gone(fooled, 300 * DAY) == 1


def test_the_time_left_is_counted_in_the_same_way() -> None:
    """And the setting is named."""
    log = filled(Clock(), (100 * DAY, 10 * DAY), (101 * DAY, 10 * DAY))
    found = deadline(
        log.segments.as_list(),
        log.config,
        0,
        log_end_offset=log.log_end_offset,
        now_ms=102 * DAY,
        is_held=False,
    )
    assert found.left_ms == 5 * DAY
    assert found.setting == f"retention.ms={7 * DAY}, ottla.retention.by=append"


@pytest.mark.parametrize("by_append", [True, False])
def test_an_active_segment_ages_by_the_clock(by_append: bool) -> None:
    """Otherwise records of one timestamp would keep a slow log's first segment for ever."""
    log = open_log(segment_ms=DAY, retention_by_append=by_append)
    append(log, 1, timestamp=5)
    assert log.is_old(5, log.segments.active.created_ms + DAY + 1) == by_append


def test_a_deletion_leaves_its_evidence() -> None:
    """The setting, the newest timestamp and the arrival; it survives the ledger's file."""
    log = filled(Clock(), (100 * DAY, 10 * DAY), (100 * DAY, 100 * DAY), by_append=False)
    delete_old_segments(log, 101 * DAY, log.log_end_offset)
    history = log.ledger.history
    setting = f"retention.ms={7 * DAY}"
    evidence = Evidence(0, 2, 101 * DAY, setting, 10 * DAY, 100 * DAY)
    assert history.evidence == [evidence]
    assert decode_history(encode_history(history)).evidence == [evidence]


def test_evidence_is_bounded_and_noted_once() -> None:
    """The oldest goes; a deletion that is tried again replaces its note."""
    history = History()
    for number in range(EVIDENCE_MAX + 5):
        history.prove(Evidence(number, number + 1, 1, "retention.bytes=1"))
    history.prove(Evidence(9, 10, 2, "retention.bytes=1"))
    assert len(history.evidence) == EVIDENCE_MAX
    assert history.evidence[0].start == 5
    assert [one.at_ms for one in history.evidence if one.start == 9] == [2]
    assert history.copy().evidence == history.evidence
    history.prove(replace(history.evidence[0], start=3, end=3))
    assert len(history.evidence) == EVIDENCE_MAX
