"""What goes to a coordinator while a rebalance waits for other members."""

import asyncio

import pytest

from ottla.client import ClientError, RequestTimedOut
from ottla.client.connection.cluster import Cluster, ClusterOptions
from ottla.client.connection.coordinator import Coordinator
from ottla.wire.api import ApiKey
from ottla.wire.messages.classic_membership import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
)
from ottla.wire.messages.find_coordinator import (
    Coordinator as Found,
)
from ottla.wire.messages.find_coordinator import (
    FindCoordinatorResponse,
)
from tests.integration.client.scripted import ScriptedBroker

# No limit that a test waits for in vain.
LONG_S = 300.0


class GroupBroker(ScriptedBroker):
    """Coordinates every group; its JoinGroup waits for `release`, as for the other members."""

    def __init__(self) -> None:
        super().__init__(held=frozenset({ApiKey.JOIN_GROUP}))
        self.others = {
            ApiKey.FIND_COORDINATOR: lambda _: FindCoordinatorResponse(
                coordinators=[Found(key="g", node_id=1, host="127.0.0.1", port=self.port)]
            ),
            ApiKey.JOIN_GROUP: lambda _: JoinGroupResponse(generation_id=7),
            ApiKey.HEARTBEAT: lambda _: HeartbeatResponse(error_code=27),
        }


async def ask(coordinator: Coordinator, timeout_s: float) -> HeartbeatResponse:
    return await coordinator.ask(HeartbeatRequest(group_id="g"), HeartbeatResponse, timeout_s)


def joining(coordinator: Coordinator) -> "asyncio.Task[JoinGroupResponse]":
    request = JoinGroupRequest(group_id="g")
    return asyncio.ensure_future(
        coordinator.ask(request, JoinGroupResponse, LONG_S, rebalances=True)
    )


def test_a_long_rebalance_holds_up_nothing_else() -> None:
    """A heartbeat is answered while JoinGroup waits, and JoinGroup gets its answer after it."""

    async def run() -> tuple[int, int]:
        async with GroupBroker() as broker:
            cluster = Cluster(broker.bootstrap, ClusterOptions())
            coordinator = Coordinator(cluster, "g")
            join = joining(coordinator)
            await broker.arrived.wait()
            beat = await ask(coordinator, LONG_S)
            assert not join.done()
            broker.release.set()
            joined = await join
            await cluster.close()
            return beat.error_code, joined.generation_id

    assert asyncio.run(run()) == (27, 7)


def test_a_coordinator_that_stands_still_is_found_by_the_early_deadline() -> None:
    """The heartbeat fails in its own time, and the rebalance that waited for minutes with it."""

    async def run() -> None:
        async with GroupBroker() as broker:
            cluster = Cluster(broker.bootstrap, ClusterOptions())
            coordinator = Coordinator(cluster, "g")
            join = joining(coordinator)
            await broker.arrived.wait()
            await ask(coordinator, LONG_S)
            broker.stands_still = True
            with pytest.raises(RequestTimedOut):
                await ask(coordinator, 0.2)
            with pytest.raises(ClientError):
                await join
            await cluster.close()
            broker.release.set()

    asyncio.run(asyncio.wait_for(run(), LONG_S / 2))
