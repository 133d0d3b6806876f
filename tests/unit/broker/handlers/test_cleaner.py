"""CompactLog and DescribeCleaner: how dirty logs are, and their cleaning on demand."""

import pytest

from ottla.base.errors import ErrorCode, OttlaError
from ottla.broker.compaction.cleaner import Cleaner
from ottla.broker.handlers.log_cleaning import (
    CLEAN,
    DESCRIBE,
    ESTIMATE,
    CompactLog,
    DescribeCleaner,
)
from ottla.record.builder import build_batch
from ottla.record.header import read_header
from ottla.wire.messages.log_cleaning import CompactLogRequest, DescribeCleanerRequest

from .replica_world import ask, play

COMPACTED = {"cleanup.policy": "compact"}


def cleaner_of(world):
    return Cleaner(
        world.settings,
        world.runtime,
        world.partitions,
        world.directories,
        world.flusher,
        world.removals,
    )


async def with_values(world):
    """Three values for one key, in a segment that is closed."""
    partition = await world.host("t", 1, configs=COMPACTED)
    for value in (b"1", b"2", b"3"):
        batch = build_batch([world.clock.now_ms()], [b"key"], [value])
        partition.append(batch, read_header(batch), world.clock.now_ms())
    partition.log.roll(world.clock.now_ms())
    partition.flush_soon()
    await world.flusher.settle()
    return partition


def request(action=DESCRIBE, topic="t"):
    return CompactLogRequest(topic=topic, partition=0, action=action)


def test_a_log_tells_how_dirty_it_is_and_what_a_cleaning_would_do():
    """Of three records with one key the last one would stay; nothing is done."""

    async def scenario(world):
        partition = await with_values(world)
        handler = CompactLog(world.partitions, cleaner_of(world))
        told = await ask(handler, request())
        assert (told.bound, told.first_dirty, told.end) == ("the active segment", 0, 3)
        assert (told.clean_bytes, told.dirty_bytes) == (0, partition.log.size_bytes)
        assert (told.pass_count, told.passes, told.estimates) == (0, [], [])
        (estimate,) = (await ask(handler, request(ESTIMATE))).estimates
        assert (estimate.records_read, estimate.records_kept, estimate.keys) == (3, 1, 1)
        assert partition.log.size_bytes == told.dirty_bytes

    play(scenario)


def test_a_log_is_cleaned_on_demand_and_the_cleaner_tells_of_it():
    """The pass is told by both; afterwards nothing is dirty."""

    async def scenario(world):
        await with_values(world)
        cleaner = cleaner_of(world)
        handler = CompactLog(world.partitions, cleaner)
        assert (await ask(handler, request(CLEAN))).wanted_end == 3
        cleaner.begin()
        for _ in range(1_000):
            told = await ask(handler, request())
            if told.pass_count:
                break
            await world.turn()
        assert (told.pass_count, told.first_dirty, told.dirty_bytes) == (1, 3, 0)
        (last,) = told.passes
        assert (last.records_read, last.records_kept) == (3, 1)
        health = ask(DescribeCleaner(cleaner, world.clock), DescribeCleanerRequest())
        assert (health.threads, health.logs, health.due, health.pass_count) == (1, 1, 0, 1)
        assert [(one.topic, one.partition) for one in health.last] == [("t", 0)]
        assert (health.failure_count, health.failed) == (0, [])
        assert health.now_ms == world.clock.now_ms()
        await cleaner.stop()

    play(scenario)


def test_what_cannot_be_compacted_is_refused():
    """No such topic, one without compaction, an unknown action."""

    async def scenario(world):
        await world.host("t", 1, configs=COMPACTED)
        await world.host("plain", 2)
        handler = CompactLog(world.partitions, cleaner_of(world))
        for body, code in (
            (request(topic="none"), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
            (request(topic="plain"), ErrorCode.POLICY_VIOLATION),
            (request(action=3), ErrorCode.INVALID_REQUEST),
        ):
            with pytest.raises(OttlaError) as caught:
                await ask(handler, body)
            assert caught.value.code == code

    play(scenario)


def test_a_cleaner_without_threads_cleans_nothing_and_says_so():
    """POLICY_VIOLATION names the settings; the log still tells how dirty it is."""

    async def scenario(world):
        await with_values(world)
        cleaner = cleaner_of(world)
        handler = CompactLog(world.partitions, cleaner)
        assert not (await ask(handler, request())).is_enabled
        with pytest.raises(OttlaError, match=r"log\.cleaner\.enable is false") as caught:
            await ask(handler, request(CLEAN))
        assert caught.value.code == ErrorCode.POLICY_VIOLATION
        assert ask(DescribeCleaner(cleaner, world.clock), DescribeCleanerRequest()).threads == 0

    play(scenario, {"log.cleaner.enable": "false"})


def test_an_error_of_the_whole_is_told_with_its_message():
    """Of DescribeCleaner, which has no other."""
    answer = DescribeCleaner.on_error(
        DescribeCleanerRequest(), ErrorCode.KAFKA_STORAGE_ERROR, "the disk is gone", 0
    )
    assert (answer.error_code, answer.error_message) == (56, "the disk is gone")
