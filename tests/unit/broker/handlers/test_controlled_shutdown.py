"""ControlledShutdown: what a stopping broker leads is moved away, as far as others can lead.

And where it dies: those that it led come first.
"""

import asyncio

import pytest

from ottla.base.errors import ErrorCode, OttlaError
from ottla.broker.handlers.between_brokers import ControlledShutdown
from ottla.wire.messages.between_brokers import ControlledShutdownRequest

from .controller_world import play
from .replica_world import ask


def request(broker_epoch=1):
    return ControlledShutdownRequest(broker_id=2, broker_epoch=broker_epoch)


def test_leadership_moves_and_what_cannot_move_is_told():
    """Another replica in sync leads; the only one in sync leads on until it is gone."""

    async def scenario(world):
        await world.topic("shared", 1, leader=2, replicas=[2, 3], isr=[2, 3])
        await world.topic("alone", 2, leader=2, replicas=[2, 3], isr=[2])
        await world.begin()
        response = await ask(ControlledShutdown(world.controller), request(), broker=2)
        remaining = [(p.topic_name, p.partition_index) for p in response.remaining_partitions]
        assert remaining == [("alone", 0)]
        state = await world.state("shared")
        assert (state.leader, state.isr) == (3, (3,))
        assert (await world.state("alone")).leader == 2

    play(scenario)


def test_only_the_broker_itself_may_ask_in_its_present_registration():
    """Others are refused, a client too; an epoch that is over is stale."""

    async def scenario(world):
        await world.topic("shared", 1, leader=2, replicas=[2, 3], isr=[2, 3])
        await world.begin()
        handler = ControlledShutdown(world.controller)
        for body, sender, code in (
            (request(), None, ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
            (request(), 3, ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
            (request(5), 2, ErrorCode.STALE_BROKER_EPOCH),
        ):
            with pytest.raises(OttlaError) as caught:
                await ask(handler, body, broker=sender)
            assert caught.value.code == code
        assert (await world.state("shared")).leader == 2

    play(scenario)


def test_partitions_without_a_leader_come_before_those_whose_isr_shrinks():
    """Clients wait for them."""

    async def scenario(world):
        await world.topic("follows", 1, leader=3, replicas=[2, 3], isr=[2, 3])
        await world.topic("leads", 2, leader=2, replicas=[2, 3], isr=[2, 3])
        await world.begin()
        await world.death(2)
        while (await world.state("follows")).isr != (3,):  # noqa: ASYNC110  # Nothing says so.
            await asyncio.sleep(0)
        assert (await world.state("leads")).leader == 3
        later = []
        while len(later) < 2:
            await asyncio.sleep(0)
            _, *orders = [names for broker, names in world.sent if broker == 3]
            later = [name for names in orders for name in names]
        assert later == ["leads", "follows"]

    play(scenario)
