"""Deadlines and the end of an exchange on a loop, with a transport that only remembers."""

import asyncio

import pytest

from ottla.network.exchange import Exchange
from ottla.network.loop_exchange import LoopExchange
from ottla.testing.simulation.virtual.loop import run_virtual
from ottla.wire.frames import encode_response
from ottla.wire.messages.between_brokers import StopReplicaRequest, StopReplicaResponse


class Transport(asyncio.Transport):
    """Remembers what is written, and whether it was given up."""

    def __init__(self):
        super().__init__()
        self.written = b""
        self.is_aborted = False

    def writelines(self, parts):
        self.written += b"".join(parts)

    def abort(self):
        self.is_aborted = True


class World:
    """A connection that is made, and when it failed."""

    def __init__(self):
        self.transport = Transport()
        self.shell = LoopExchange(Exchange("broker 2", "tester"), self.on_failed)
        self.failed_s = []
        self.waiters = []

    def on_failed(self):
        self.failed_s.append(self.shell.loop.time())
        self.waiters += self.shell.end()

    def send(self, waiter, timeout_s):
        self.shell.send(StopReplicaRequest(), 4, timeout_s, waiter)

    def answer(self, correlation_id):
        data = b"".join(encode_response(StopReplicaResponse(), 5, 4, correlation_id))
        room = self.shell.exchange.get_buffer()
        room[: len(data)] = data
        return list(self.shell.exchange.receive(len(data)))


def run(scenario):
    """On a loop whose time passes by itself."""
    run_virtual(scenario())


def test_it_fails_at_the_earliest_deadline():
    """Also where a later one was set first; what is in flight is returned in order."""

    async def scenario():
        world = World()
        world.shell.made(world.transport)
        world.send("first", 60)
        world.send("second", 2)
        await asyncio.sleep(100)
        assert world.failed_s == [2.0]
        assert world.waiters == ["first", "second"]
        assert world.transport.is_aborted
        assert not world.shell.is_open

    run(scenario)


def test_the_timer_goes_on_to_the_next_deadline():
    """That of an answered request is over, and no other passes unseen."""

    async def scenario():
        world = World()
        world.shell.made(world.transport)
        world.send("first", 1)
        world.send("second", 5)
        await asyncio.sleep(0.5)
        assert [waiter for waiter, _ in world.answer(0)] == ["first"]
        await asyncio.sleep(100)
        assert world.failed_s == [5.0]

    run(scenario)


def test_no_timer_is_left_when_it_ends():
    """The deadline of a request that has failed already means nothing."""

    async def scenario():
        world = World()
        world.shell.made(world.transport)
        world.send("only", 1)
        world.shell.exchange.closed()
        assert world.shell.end() == ["only"]
        await asyncio.sleep(100)
        assert world.failed_s == []

    run(scenario)


def test_a_connection_that_ended_before_it_was_made_is_given_up():
    """Its transport comes too late; it is never open."""

    async def scenario():
        world = World()
        assert not world.shell.is_open
        world.shell.exchange.closed()
        world.shell.end()
        world.shell.made(world.transport)
        assert world.transport.is_aborted
        assert not world.shell.is_open

    run(scenario)


def test_a_request_without_an_answer_has_no_deadline():
    """acks=0: it is written, and nothing waits."""

    async def scenario():
        world = World()
        world.shell.made(world.transport)
        world.shell.send_unanswered(StopReplicaRequest(), 4)
        assert world.transport.written
        assert world.shell.exchange.in_flight == 0
        await asyncio.sleep(100)
        assert world.shell.is_open

    run(scenario)


def test_it_ends_once():
    """Both of its shells ask before whether it has ended: the waiters are called once."""

    async def scenario():
        world = World()
        world.shell.exchange.closed()
        world.shell.end()
        with pytest.raises(AssertionError):
            world.shell.end()

    run(scenario)
