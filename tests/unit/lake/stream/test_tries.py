"""What a follow does about failures: outages are waited for, others tried again three times."""

import threading

import pytest

from ottla.base.errors import ErrorCode, OttlaError
from ottla.client.common.errors import ConnectionFailed
from ottla.lake.tables.table import CommitConflict, WriterFenced
from ottla.lake.write.tries import Tries


def tries() -> tuple[Tries, list[str], list[float], list[float]]:
    """With what it said of troubles and recoveries, and a clock; it never waits."""
    stop = threading.Event()
    stop.set()
    troubles: list[str] = []
    recoveries: list[float] = []
    clock = [0.0]
    made = Tries(stop, lambda e: troubles.append(e.message), recoveries.append, lambda: clock[0])
    return made, troubles, recoveries, clock


def test_an_outage_is_said_once_and_so_is_its_end() -> None:
    """Whatever becomes of other failures, it does not count as one of them."""
    made, troubles, recoveries, clock = tries()
    for _ in range(50):
        made.failed(ConnectionFailed("no broker"))
        made.failed(OttlaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "no leader"))
        clock[0] += 1
    made.reached()
    made.reached()
    assert (troubles, recoveries) == (["no broker"], [50.0])
    for _ in range(3):
        made.failed(OttlaError(ErrorCode.UNKNOWN_SERVER_ERROR, "a task failed"))
    with pytest.raises(OttlaError, match="a task failed"):
        made.failed(OttlaError(ErrorCode.UNKNOWN_SERVER_ERROR, "a task failed"))


def test_a_commit_begins_the_count_anew() -> None:
    made, troubles, _, _ = tries()
    for _ in range(4):
        for _ in range(3):
            made.failed(OttlaError(ErrorCode.UNKNOWN_SERVER_ERROR, "a task failed"))
        made.succeeded()
    assert len(troubles) == 12


def test_a_lost_race_is_no_failure_and_a_newer_writer_ends_it() -> None:
    made, troubles, _, _ = tries()
    for _ in range(10):
        made.failed(CommitConflict(ErrorCode.CONCURRENT_TRANSACTIONS, "lost"))
    with pytest.raises(WriterFenced):
        made.failed(WriterFenced(ErrorCode.INVALID_PRODUCER_EPOCH, "newer"))
    with pytest.raises(OttlaError, match="made anew"):
        made.failed(OttlaError(ErrorCode.UNKNOWN_TOPIC_ID, "made anew"))
    assert troubles == []
