"""A broker starts though the store has not noticed its end yet, or loses an answer."""

import asyncio
import logging
from random import Random

import pytest

from ottla.base.errors import ErrorCode, OttlaError
from ottla.coordination.memory.faults import StoreFaults
from ottla.testing.cluster import Cluster


async def crash(cluster, broker_id):
    """End a broker as a power cut does: its session stands, and is returned."""
    broker = cluster.brokers.pop(broker_id)
    session = broker.parts.cluster.membership.session
    broker.parts.cluster.membership.retire()
    broker.parts.cluster.membership.session = None
    await broker.stop(clean=False)
    broker.storage.store.abandon()
    return session


def test_what_is_left_of_its_own_last_session_is_waited_for(caplog):
    """The node under its id is its own: it starts as soon as that is gone."""
    caplog.set_level(logging.INFO)

    async def main():
        async with Cluster(1, {"broker.session.timeout.ms": "60000"}) as cluster:
            before = cluster.brokers[1].parts.cluster.fence.broker_epoch
            session = await crash(cluster, 1)
            starting = asyncio.ensure_future(cluster.restart(1))
            await cluster.until(lambda: "waiting for the end of this broker" in caplog.text)
            assert not starting.done()
            session.expire()
            broker = await asyncio.wait_for(starting, 120)
            assert broker.parts.cluster.fence.broker_epoch == before + 1

    asyncio.run(main())


def test_another_broker_of_the_same_id_is_refused_at_once():
    """Its data folder never had the session that stands."""

    async def main():
        async with Cluster(2) as cluster:
            first = cluster.brokers.pop(2)
            cluster._disks[2] = type(cluster._disks[2])()
            with pytest.raises(OttlaError) as told:
                await cluster.restart(2)
            assert told.value.code is ErrorCode.DUPLICATE_BROKER_REGISTRATION
            assert not first.parts.cluster.membership.session.expired
            cluster.brokers[2] = first

    asyncio.run(main())


@pytest.mark.parametrize("answer", range(12))
@pytest.mark.parametrize("applied", [True, False])
def test_one_lost_answer_does_not_end_a_start(answer, applied):
    """Whichever answer of the store is lost, and whatever became of the change."""

    async def main():
        faults = StoreFaults(Random(1))
        exchange = faults.exchange
        asked = 0

        async def lossy(client, action, *, changes):
            nonlocal asked
            asked += 1
            if asked == answer + 1:
                faults.lose_next_answer(client, applied=applied)
            return await exchange(client, action, changes=changes)

        async with Cluster(1, {"broker.session.timeout.ms": "30000"}, faults=faults) as cluster:
            await cluster.kill(1)
            faults.exchange = lossy
            broker = await cluster.restart(1)
            assert broker.parts.cluster.fence.is_registered
            assert asked > answer

    asyncio.run(main())
