"""Requests that hold the event loop: who sent them is in the log."""

import asyncio

import pytest

from ottla.base.settings import BrokerSettings
from ottla.broker.process.broker import Broker
from ottla.broker.serving.stalls import Stalls
from ottla.coordination.memory.memory import MemoryStore
from ottla.storage.disk.memory_filesystem import MemoryFileSystem
from ottla.testing.clock import ManualClock
from ottla.wire.api import ApiKey
from ottla.wire.messages.metadata import MetadataRequest
from ottla.wire.messages.topics import CreatableTopic, CreateTopicsRequest
from tests.integration.broker.inprocess import SETTINGS, Caller


class SlowClock(ManualClock):
    """Goes on by `step_ms` each time that it is read."""

    step_ms = 0

    def monotonic_ms(self) -> int:
        self.advance(self.step_ms)
        return super().monotonic_ms()


def served_slowly(step_ms, *requests):
    """Send the requests to a broker whose clock is slow while it serves them."""

    async def main():
        clock = SlowClock()
        settings = BrokerSettings(SETTINGS)
        broker = Broker(settings, clock=clock, filesystem=MemoryFileSystem(), store=MemoryStore())
        await broker.start()
        try:
            caller = Caller(broker, *await asyncio.open_connection("127.0.0.1", broker.port))
            clock.step_ms = step_ms
            for body, version in requests:
                await caller.call(body, version)
            clock.step_ms = 0
            await caller.close()
        finally:
            await broker.stop()

    asyncio.run(main())


METADATA = MetadataRequest(topics=[])


def test_a_request_that_holds_the_loop_is_named(caplog):
    """With its user, address and size, and what to do; once in a while for a user and API."""
    caplog.set_level("INFO")
    served_slowly(1500, (METADATA, 12), (METADATA, 12))
    (line,) = [each for each in caplog.messages if "held the event loop" in each]
    assert line.startswith("METADATA of User:ANONYMOUS from 127.0.0.1:")
    assert "request_percentage" in line
    (level,) = {each.levelname for each in caplog.records if "held the event" in each.message}
    assert level == "WARNING"


def test_a_request_that_is_served_in_time_is_not_named(caplog):
    """Its clock is read a few times."""
    caplog.set_level("INFO")
    served_slowly(10, (METADATA, 12))
    assert "held the event loop" not in caplog.text


def test_the_steps_of_a_request_that_waits_are_measured_one_by_one(caplog):
    """What it waits for holds nothing; a step that takes long is named."""
    caplog.set_level("INFO")
    topic = CreatableTopic(name="t", num_partitions=1, replication_factor=1)
    served_slowly(150, (CreateTopicsRequest(topics=[topic], timeout_ms=60_000), 5))
    assert "CREATE_TOPICS of User:ANONYMOUS" in caplog.text


class Line:
    """A client's connection."""

    principal = "User:alice"
    peer_host = "10.0.0.9"
    peer_port = 4711


def test_time_between_the_steps_is_nobodys():
    """A request that waits for a second in all holds the loop for none of it."""
    clock = ManualClock()
    stalls = Stalls(clock.monotonic_ms)

    async def wait_long():
        for _ in range(3):
            clock.advance(99)
            await asyncio.sleep(0)
        clock.advance(100)
        return "done"

    async def scenario():
        async def beside():
            clock.advance(1000)

        other = asyncio.ensure_future(beside())
        done = await stalls.watched(wait_long(), Line(), ApiKey.CREATE_ACLS, 10)
        await other
        return done

    assert asyncio.run(scenario()) == "done"
    assert (stalls.count, stalls.longest_ms) == (1, 100)


def test_a_watched_request_that_is_cancelled_ends():
    """It gets the cancellation, and may clean up."""
    stalls = Stalls(ManualClock().monotonic_ms)
    cleaned = []

    async def wait_for_ever():
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            cleaned.append(True)

    async def watched():
        await stalls.watched(wait_for_ever(), Line(), ApiKey.CREATE_ACLS, 10)

    async def scenario():
        task = asyncio.ensure_future(watched())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(scenario())
    assert cleaned == [True]
