"""The handshake of brokers over sockets: who gets through, and what stays refused."""

import asyncio

import pytest

from ottla.base.chance import random_bytes
from ottla.base.errors import ErrorCode
from ottla.broker.cluster.registration import agree_on_secret
from ottla.coordination.memory.memory import MemoryStore, MemoryTree
from ottla.wire.messages.between_brokers import BrokerHandshakeRequest, StopReplicaRequest
from ottla.wire.messages.fetch import ReplicaState
from tests.integration.broker.broker_client import Client, fetch, running
from tests.integration.broker.two_brokers import OLD, QUESTION, opener_of, peers_of, refusal, run


def test_who_does_not_know_the_secret_is_refused():
    """Neither side believes the other; the broker that dials says it first."""

    async def scenario():
        async with running({"node.id": "2"}) as broker:
            peers = await peers_of(broker, secret=b"\x01" * 32)
            error = await refusal(peers.request(2, QUESTION, version=OLD))
            assert error.code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
            assert "/cluster/secret" in error.message
            peers.close()

    run(scenario())


def test_a_made_up_proof_is_refused():
    """A client that plays through the handshake without the secret has proven nothing."""

    async def scenario():
        async with running({"node.id": "2"}) as broker:
            client = await Client.connect(broker.port)
            claim = BrokerHandshakeRequest(
                cluster_id=broker.parts.cluster.view.cluster_id,
                broker_id=1,
                receiver_id=2,
                challenge=bytes(32),
            )
            assert (await client.call(claim, 0)).error_code == ErrorCode.NONE
            claim.proof = bytes(32)
            answer = await client.call(claim, 0)
            assert answer.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
            response = await client.call(StopReplicaRequest(), 4)
            assert response.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
            client.close()

    run(scenario())


def test_a_replayed_handshake_proves_nothing():
    """What was recorded from a true broker's connection is refused on another."""

    async def scenario():
        async with running({"node.id": "2"}) as broker:
            true = await opener_of(broker)
            client = await Client.connect(broker.port)
            second = true.second(await client.call(true.first(), 0))
            assert (await client.call(second, 0)).error_code == ErrorCode.NONE
            request = fetch("a", 0, replica_state=ReplicaState(replica_id=1, replica_epoch=1))
            assert (await client.call(request, 17)).error_code == ErrorCode.NONE
            client.close()

            listener = await Client.connect(broker.port)
            recorded = BrokerHandshakeRequest(
                cluster_id=second.cluster_id,
                broker_id=second.broker_id,
                broker_epoch=second.broker_epoch,
                receiver_id=second.receiver_id,
                challenge=second.challenge,
            )
            assert (await listener.call(recorded, 0)).error_code == ErrorCode.NONE
            answer = await listener.call(second, 0)
            assert answer.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
            refused = await listener.call(fetch("a", 0, replica_id=1), 12)
            assert refused.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
            listener.close()

    run(scenario())


@pytest.mark.parametrize(
    ("claims", "code"),
    [
        ({"cluster_id": "another"}, ErrorCode.INCONSISTENT_CLUSTER_ID),
        ({"asks_for": 3}, ErrorCode.BROKER_ID_NOT_REGISTERED),
    ],
)
def test_a_broker_from_elsewhere_is_told_so(claims, code):
    """One of another cluster, and one that has somebody else's address."""

    async def scenario():
        async with running({"node.id": "2"}) as broker:
            peers = await peers_of(broker, **claims)
            error = await refusal(peers.request(claims.get("asks_for", 2), QUESTION, version=OLD))
            assert error.code == code
            peers.close()

    run(scenario())


def test_an_earlier_life_of_a_broker_is_refused():
    """Once an epoch has been proven, who has a lower one is another process, or was stopped."""

    async def scenario():
        async with running({"node.id": "2"}) as broker:
            new = await peers_of(broker, epoch=9)
            old = await peers_of(broker, epoch=8)
            await new.request(2, QUESTION, version=OLD)
            error = await refusal(old.request(2, QUESTION, version=OLD))
            assert error.code == ErrorCode.STALE_BROKER_EPOCH
            new.close()
            old.close()

    run(scenario())


def test_brokers_meet_on_their_own_listener_only():
    """The handshake is refused where clients come in."""

    async def scenario():
        settings = {
            "node.id": "2",
            "listeners": "CLIENTS://127.0.0.1:0,BROKERS://127.0.0.1:0",
            "listener.security.protocol.map": "CLIENTS:PLAINTEXT,BROKERS:PLAINTEXT",
            "inter.broker.listener.name": "BROKERS",
        }
        async with running(settings) as broker:
            for name, expected in (
                ("BROKERS", ErrorCode.NONE),
                ("CLIENTS", ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
            ):
                opener = await opener_of(broker)
                client = await Client.connect(broker.ports[name])
                assert (await client.call(opener.first(), 0)).error_code == expected
                client.close()

    run(scenario())


def test_all_brokers_of_a_cluster_take_one_secret():
    """The first one makes it; those that start at once agree."""

    async def scenario():
        tree = MemoryTree()
        stores = [MemoryStore(tree) for _ in range(4)]
        await stores[0].ensure("/cluster")
        secrets = await asyncio.gather(*(agree_on_secret(each, random_bytes) for each in stores))
        assert len(set(secrets)) == 1
        assert len(secrets[0]) == 32

    run(scenario())
