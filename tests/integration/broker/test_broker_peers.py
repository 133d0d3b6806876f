"""A broker's connections to the others: opened once, given up in time, their loss told at once."""

import asyncio

import pytest

from ottla.base.chance import random_bytes
from ottla.base.errors import ErrorCode
from ottla.broker.cluster.handshake import Credentials
from ottla.broker.cluster.peers import PeerLimits, Peers
from ottla.coordination.memory.memory import MemoryStore
from ottla.metadata.image import BrokerImage, Endpoint
from ottla.storage.disk.memory_filesystem import MemoryFileSystem
from ottla.testing.simulation.machine.machine import PORT
from ottla.testing.simulation.machine.world import World
from ottla.testing.simulation.virtual.loop import VirtualLoop
from ottla.wire.messages.list_offsets import OffsetForLeaderEpochRequest
from tests.integration.broker.broker_client import running, until
from tests.integration.broker.two_brokers import (
    OLD,
    QUESTION,
    connections,
    dialling,
    forget,
    know,
    refusal,
    run,
    two,
)


def test_one_connection_carries_all_requests():
    """Also those made before it was open; each gets its own answer."""

    async def scenario():
        async with two() as (one, other):
            asked = [one.peers.request(2, QUESTION, version=OLD) for _ in range(20)]
            answers = await asyncio.gather(*asked)
            assert [answer.error_code for answer in answers] == [ErrorCode.NONE] * 20
            assert connections(other) == 1

    run(scenario())


def test_a_fetcher_has_a_connection_of_its_own():
    """`open` gives one that is proven, and that is closed by whoever asked for it."""

    async def scenario():
        async with two() as (one, other):
            await one.peers.request(2, QUESTION, version=OLD)
            connection = await one.peers.open(2)
            assert connections(other) == 2
            question = OffsetForLeaderEpochRequest(replica_id=1)
            response = await connection.request(question, timeout_ms=30_000)
            assert response.topics == []
            connection.close()
            await until(lambda: connections(other) == 1)

    run(scenario())


def test_the_end_of_a_broker_is_noticed_at_once():
    """Its connection ends, whoever asked about it is told, and the next request tries anew."""

    async def scenario():
        lost = []
        store, files = MemoryStore(), MemoryFileSystem()
        async with running({"node.id": "2"}, store=store, filesystem=files) as other:
            one = await dialling(other)
            one.peers.on_lost.subscribe(lost.append)
            await one.peers.request(2, QUESTION, version=OLD)
            assert lost == []
        await until(lambda: lost == [2])
        error = await refusal(one.peers.request(2, QUESTION, version=OLD))
        assert error.code == ErrorCode.BROKER_NOT_AVAILABLE
        assert "advertised.listeners" in error.message
        async with running({"node.id": "2"}, store=store, filesystem=files) as again:
            know(one, 2, again.port)
            await one.peers.request(2, QUESTION, version=OLD)
        await until(lambda: lost == [2, 2])
        one.peers.close()

    run(scenario())


def test_who_hung_up_is_not_told_to_clients_until_it_answers_again():
    """Metadata names no leader meanwhile, so that clients ask again; it ends by itself, too."""

    async def scenario():
        told = []
        store, files = MemoryStore(), MemoryFileSystem()
        async with running({"node.id": "2"}, store=store, filesystem=files) as other:
            one = await dialling(other)
            one.peers.on_lost.subscribe(lambda _: told.append(set(one.peers.answering())))
            await one.peers.request(2, QUESTION, version=OLD)
            assert set(one.peers.answering()) == {2}
        await until(lambda: told == [set()])
        async with running({"node.id": "2"}, store=store, filesystem=files) as again:
            know(one, 2, again.port)
            await one.peers.request(2, QUESTION, version=OLD)
            assert set(one.peers.answering()) == {2}
        await until(lambda: told == [set(), set()])
        await until(lambda: set(one.peers.answering()) == {2})
        one.peers.close()

    run(scenario())


def test_who_is_only_out_of_reach_is_told_to_clients():
    """Nothing comes from it here; a client may well reach it, and there may be no other leader."""

    async def scenario():
        async with two() as (one, _):
            told = []
            one.peers.on_lost.subscribe(lambda _: told.append(set(one.peers.answering())))
            connection = await one.peers.open(2)
            connection.connection_lost(TimeoutError(110, "Connection timed out"))
            assert told == [{2}]
            connection.close()

    run(scenario())


def test_closing_one_s_own_connections_loses_nobody():
    """`on_lost` is for what others do."""

    async def scenario():
        async with two() as (one, other):
            lost = []
            one.peers.on_lost.subscribe(lost.append)
            await one.peers.request(2, QUESTION, version=OLD)
            await one.peers.open(2)
            one.peers.close()
            await until(lambda: connections(other) == 0)
            assert lost == []
            error = await refusal(one.peers.request(2, QUESTION, version=OLD))
            assert error.code == ErrorCode.BROKER_NOT_AVAILABLE

    run(scenario())


@pytest.mark.parametrize("change", ["epoch", "gone"])
def test_a_connection_to_what_a_broker_was_is_given_up(change):
    """It registered again, or left: the connection to its earlier life is closed."""

    async def scenario():
        async with two() as (one, other):
            await one.peers.request(2, QUESTION, version=OLD)
            epoch = other.image.brokers[2].epoch
            if change == "epoch":
                know(one, 2, other.port, epoch + 1)
            else:
                forget(one, 2)
            one.peers.on_image()
            await until(lambda: connections(other) == 0)

    run(scenario())


def test_an_unknown_broker_is_not_dialled():
    """Who is not in the image is not alive."""

    async def scenario():
        async with two() as (one, _):
            error = await refusal(one.peers.request(3, QUESTION, version=OLD))
            assert error.code == ErrorCode.BROKER_NOT_AVAILABLE
            one.image = one.image.with_broker(BrokerImage(3, {"X": Endpoint("127.0.0.1", 1)}))
            error = await refusal(one.peers.request(3, QUESTION, version=OLD))
            assert error.code == ErrorCode.LISTENER_NOT_FOUND

    run(scenario())


class StuckDialer:
    """Connects to nobody."""

    async def dial(self, host, port, protocol, timeout_ms):
        await asyncio.get_running_loop().create_future()


def test_who_waits_for_a_connection_is_told_when_it_is_given_up():
    """The broker leaves while it is dialled: an error, no endless wait, no cancellation."""

    async def scenario():
        async with two() as (one, _):
            peers = Peers(
                Credentials(1, one.cluster_id, bytes(32), random_bytes, lambda: 1),
                lambda: one.image,
                "PLAINTEXT",
                StuckDialer(),
                PeerLimits(),
            )
            waiting = [
                asyncio.ensure_future(peers.request(2, QUESTION, version=OLD)) for _ in range(3)
            ]
            await asyncio.sleep(0)
            waiting[0].cancel()
            await asyncio.sleep(0)
            forget(one, 2)
            peers.on_image()
            for each in waiting[1:]:
                assert (await refusal(each)).code == ErrorCode.BROKER_NOT_AVAILABLE

    run(scenario())


def test_a_quiet_connection_is_not_taken_for_idle():
    """An hour without a request, in virtual time: pings keep it, as its end looks like a death."""
    loop = VirtualLoop(1)
    world = World(loop, 1)
    lost = []

    async def scenario():
        one, other = (world.add_broker(number, {}) for number in (1, 2))
        for machine in (one, other):
            machine.start()
        await until(lambda: one.is_ready and other.is_ready)
        there = BrokerImage(2, {"PLAINTEXT": Endpoint(other.host, PORT)})
        one.broker.parts.cluster.view.replace(one.broker.image.with_broker(there))
        one.broker.parts.cluster.peers.on_lost.subscribe(lost.append)
        await one.process.spawn(
            loop, one.broker.parts.cluster.peers.request(2, QUESTION, version=OLD)
        )
        before = list(other.broker.serving.listeners.open[0].connections)
        await asyncio.sleep(3600)
        assert list(other.broker.serving.listeners.open[0].connections) == before
        assert lost == []
        other.kill()
        await asyncio.sleep(30)
        assert lost == [2]
        for machine in (one, other):
            machine.kill()

    try:
        loop.run_until_complete(scenario())
    finally:
        loop.close()
