"""Sessions of fetchers, as KIP-227 defines them."""

import random

import pytest

from ottla.base.errors import ErrorCode, OttlaError
from ottla.broker.fetch.sessions import FetchSessions, PartitionKey, WantedPartition, merge

A0 = PartitionKey("a", 0)
A1 = PartitionKey("a", 1)
B0 = PartitionKey("b", 0)


def at(offset):
    return WantedPartition(offset, 1024, -1, -1)


def sessions(slots=10):
    return FetchSessions(slots, eviction_ms=1000, rng=random.Random(7))


def open_one(cache, *keys, now_ms=0, uses_topic_ids=False):
    asked = [(key, at(0)) for key in keys]
    return cache.open(asked, uses_topic_ids=uses_topic_ids, now_ms=now_ms)


def resume(cache, session_id, epoch, now_ms=0, uses_topic_ids=False):
    return cache.resume(session_id, epoch, uses_topic_ids=uses_topic_ids, now_ms=now_ms)


def test_the_epoch_counts_the_requests_of_a_session():
    """The first incremental request carries 1, the next 2."""
    cache = sessions()
    session = open_one(cache, A0)
    assert session.id > 0
    assert resume(cache, session.id, 1) is session
    assert resume(cache, session.id, 2) is session


def test_a_repeated_epoch_is_refused():
    """A lost answer is noticed: the fetcher starts a new session."""
    cache = sessions()
    session = open_one(cache, A0)
    resume(cache, session.id, 1)
    with pytest.raises(OttlaError) as raised:
        resume(cache, session.id, 1)
    assert raised.value.code == ErrorCode.INVALID_FETCH_SESSION_EPOCH


def test_after_the_greatest_epoch_comes_one():
    """0 and -1 mean something else, and so are skipped when the number wraps."""
    cache = sessions()
    session = open_one(cache, A0)
    session.epoch = 2**31 - 1
    resume(cache, session.id, 2**31 - 1)
    assert session.epoch == 1


def test_an_unknown_session_is_refused():
    """After a restart of the broker its sessions are gone."""
    with pytest.raises(OttlaError) as raised:
        resume(sessions(), 42, 1)
    assert raised.value.code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_a_session_keeps_its_way_of_naming_topics():
    """Names and ids may not mix in one session (KIP-516)."""
    cache = sessions()
    session = open_one(cache, A0)
    with pytest.raises(OttlaError) as raised:
        resume(cache, session.id, 1, uses_topic_ids=True)
    assert raised.value.code == ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR


def test_an_incremental_request_changes_adds_and_forgets():
    """Only differences travel."""
    cache = sessions()
    session = open_one(cache, A0, A1)
    merge(session, [(A0, at(5)), (B0, at(7))], [A1])
    assert {key: r.wanted.fetch_offset for key, r in session.partitions.items()} == {A0: 5, B0: 7}


def test_a_full_cache_refuses_while_its_sessions_are_in_use():
    """A fetcher without a session is served in full each time."""
    cache = sessions(slots=1)
    open_one(cache, A0, now_ms=0)
    assert open_one(cache, B0, now_ms=1000) is None


def test_an_idle_session_gives_way():
    """min.incremental.fetch.session.eviction.ms without a request."""
    cache = sessions(slots=1)
    idle = open_one(cache, A0, A1, now_ms=0)
    assert open_one(cache, B0, now_ms=1001) is not None
    with pytest.raises(OttlaError):
        resume(cache, idle.id, 1)


def test_a_small_old_session_gives_way_to_a_larger_one():
    """A larger session saves more."""
    cache = sessions(slots=1)
    small = open_one(cache, A0, now_ms=0)
    resume(cache, small.id, 1, now_ms=900)
    assert open_one(cache, B0, now_ms=1500) is None
    assert open_one(cache, A1, B0, now_ms=1500) is not None
    assert len(cache) == 1


def test_a_request_for_nothing_begins_no_session():
    """A session without partitions would remember nothing."""
    assert open_one(sessions()) is None
