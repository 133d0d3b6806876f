"""Whatever stands in a coordinator's files, it loads, and loses only what cannot be read."""

import logging
from random import Random

import pytest

from .stored_world import CHECKS, KINDS, STATES, StoredWorld, rubbish, told


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_only_what_cannot_be_read_is_lost(kind, check):
    """Records that say nothing, bits that turned over, pieces of files that were overwritten.

    More cases by hand: `python -m tests.unit.broker.stored_world --cases 10000`.
    """
    for seed in range(40):
        check(kind, Random(seed))


@pytest.mark.parametrize("kind", KINDS)
def test_one_warning_tells_what_was_lost_where(kind, caplog):
    """Topic, partition, offset, the cause, and how many; the shard keeps the count."""
    world = StoredWorld(kind)
    random = Random(1)
    world.write(*STATES[kind](random, 1))
    first = world.log.log_end_offset
    for number in range(8):
        world.write((b"\x7f\xff" + bytes([number]), b"rubbish"))
    with caplog.at_level(logging.WARNING):
        shard = world.loaded()
    (line,) = [record.getMessage() for record in caplog.records]
    assert line.startswith(f"{world.topic_partition}: 8 records and 0 batches cannot be read")
    assert f"offset {first}: a record of unknown kind 0x7fff" in line
    assert "and 3 more" in line
    assert shard.losses.records == 8
    assert told(shard)


def test_an_earlier_value_counts_where_the_last_one_cannot_be_read():
    """Rubbish over a committed offset leaves the offset before it."""
    world = StoredWorld("groups")
    random = Random(3)
    key, value = next(
        each
        for at in range(99)
        for each in STATES["groups"](random, at)
        if each[0][1] == 1 and each[1]
    )
    world.write((key, value))
    before = told(world.loaded())
    world.write((key, b"\x00\x63"))
    shard = world.loaded()
    assert told(shard) == before
    assert shard.losses.records == 1


def test_a_marker_that_is_lost_leaves_no_offset_pending_for_ever(caplog):
    """The log's producers know that the transaction is over; its offsets count for nothing."""
    del caplog
    world = StoredWorld("groups")
    key, value = next(
        each
        for at in range(99)
        for each in STATES["groups"](Random(at), at)
        if each[0][1] == 1 and each[1]
    )
    world.write_transactional(7, (key, value))
    world.end_transaction(7)
    path, begin, _, _ = world.batches[-1]
    world.damage(path, begin + 70, b"\xff")
    coordinator = world.loaded().coordinator
    assert not coordinator.registry.pending
    world.write_transactional(8, (key, value))
    assert world.loaded().coordinator.registry.pending


def test_rubbish_is_rubbish():
    """What the generator makes is never a record."""
    for seed in range(200):
        for kind in KINDS:
            rubbish(kind, Random(seed))
