"""`ottla.operations.readiness`: ready only after each broker has proven itself."""

import asyncio
import time

import pytest
from rig.probe import free_port

from ottla.base.errors import OttlaError
from ottla.client import Admin, Consumer
from ottla.metadata.canary import TOPIC
from ottla.operations.readiness import ready
from ottla.testing.cluster import Cluster

_PATIENCE_S = 120.0


def at(cluster: Cluster) -> str:
    return f"127.0.0.1:{cluster.any.port}"


def test_a_broker_is_proven_of_ottla_and_of_kafka(bootstrap: str) -> None:
    """A record was acknowledged and read back, and shows the broker's clock."""

    async def main() -> None:
        before_ms = time.time() * 1000
        (proof,) = await ready(bootstrap, 1, _PATIENCE_S, proves=True)
        assert proof.failure is None
        assert len(proof.replicas) == 1
        assert proof.written_ms > 0 <= proof.read_ms
        assert abs(proof.clock_ms) <= time.time() * 1000 - before_ms
        (plain,) = await ready(bootstrap, 1, _PATIENCE_S, proves=False)
        assert plain.failure is None

    asyncio.run(main())


def test_each_broker_of_a_cluster_gets_a_record_on_all_replicas() -> None:
    """Two proofs are two records per broker; the topic is made once."""

    async def main() -> None:
        async with Cluster(3) as cluster:
            for _ in range(2):
                proofs = await ready(at(cluster), 3, _PATIENCE_S, proves=True)
                assert [(one.broker_id, one.failure) for one in proofs] == [
                    (1, None),
                    (2, None),
                    (3, None),
                ]
                assert [set(one.replicas) for one in proofs] == [{1, 2, 3}] * 3
                assert [one.replicas[0] for one in proofs] == [1, 2, 3]
            async with Consumer(at(cluster), TOPIC) as consumer:
                seen = [(await anext(consumer)).partition for _ in range(6)]
            assert sorted(seen) == [0, 0, 1, 1, 2, 2]

    asyncio.run(main())


def test_a_topic_made_by_one_broker_grows_with_the_cluster() -> None:
    """More partitions and more replicas, so that the proof is of all brokers again."""

    async def main() -> None:
        async with Cluster(3) as cluster:
            await cluster.kill(2)
            await cluster.kill(3)
            await cluster.until(lambda: len(cluster.any.image.brokers) == 1)
            (proof,) = await ready(at(cluster), 1, _PATIENCE_S, proves=True)
            assert proof.replicas == (1,)
            await cluster.restart(2)
            await cluster.restart(3)
            proofs = await ready(at(cluster), 3, _PATIENCE_S, proves=True)
            assert [one.failure for one in proofs] == [None] * 3
            assert [len(one.replicas) for one in proofs] == [3] * 3

    asyncio.run(main())


def test_brokers_that_fail_are_named_with_the_reason() -> None:
    """One that is down, and those whose records it does not copy."""

    async def main() -> None:
        async with Cluster(3) as cluster:
            await ready(at(cluster), 3, _PATIENCE_S, proves=True)
            await cluster.kill(2)
            await cluster.until(lambda: len(cluster.any.image.brokers) == 2)
            first, second, third = await ready(at(cluster), 1, 8, proves=True)
            assert second.failure == "broker 2 is down; start it"
            for proof in (first, third):
                assert proof.failure is not None
                assert "has replicas that are not in sync: [2]" in proof.failure

    asyncio.run(main())


def test_a_cluster_that_lacks_brokers_or_a_leader_is_not_ready() -> None:
    """Without a proof, too: brokers are counted, and partitions without a leader named."""

    async def main() -> None:
        async with Cluster(2) as cluster:
            await cluster.create_topic("t", assignments={0: [2]})
            with pytest.raises(OttlaError, match=r"2 of 3 brokers are alive: \[1, 2\]"):
                await ready(at(cluster), 3, 2, proves=False)
            await cluster.kill(2)
            await cluster.until(lambda: cluster.leader("t") is None)
            proofs = {
                one.broker_id: one.failure for one in await ready(at(cluster), 1, 2, proves=False)
            }
            assert proofs == {1: None, 2: "t-0 has no leader; `ottla why leader t-0`"}
            async with Admin(at(cluster)) as admin:
                assert TOPIC not in await admin.topics.list(internal=True)

    asyncio.run(main())


def test_a_cluster_that_is_still_starting_is_waited_for_and_one_that_never_answers_is_not() -> None:
    """The time is a limit; the error is that of the last attempt."""
    with pytest.raises(OttlaError, match="cannot connect"):
        asyncio.run(ready(f"127.0.0.1:{free_port()}", 1, 1, proves=True))
