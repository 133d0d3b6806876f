"""A broker in this loop, and another that dials it over real sockets; or only claims to be one."""

import asyncio
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from ottla.base.chance import random_bytes
from ottla.base.errors import OttlaError
from ottla.broker.cluster.handshake import Credentials, Opener
from ottla.broker.cluster.peers import PeerLimits, Peers
from ottla.broker.cluster.registration import agree_on_secret
from ottla.metadata.image import BrokerImage, Endpoint
from ottla.network.dialer import LoopDialer
from ottla.wire.messages.api_versions import ApiVersionsRequest
from tests.integration.broker.broker_client import running

# What stands in for a request: any broker answers it, and it says nothing.
QUESTION = ApiVersionsRequest()
OLD = 0


def run(coroutine):
    return asyncio.run(coroutine)


class Dialling:
    """Broker 1, as far as it talks to others: the rest of it does not exist."""

    def __init__(self, own, image):
        self.image = image
        self.cluster_id = own.cluster_id
        self.peers = Peers(own, lambda: self.image, "PLAINTEXT", LoopDialer(), PeerLimits())


async def dialling(broker):
    """A broker 1 that knows the cluster's secret, and where `broker` is."""
    secret = await agree_on_secret(broker.storage.store, random_bytes)
    own = Credentials(1, broker.parts.cluster.view.cluster_id, secret, random_bytes, lambda: 1)
    one = Dialling(own, broker.image)
    know(one, broker.broker_id, broker.port)
    return one


@asynccontextmanager
async def two(settings=None):
    """Broker 2, and a broker 1 that knows where 2 is."""
    async with running({"node.id": "2", **(settings or {})}) as other:
        one = await dialling(other)
        try:
            yield one, other
        finally:
            one.peers.close()


def know(broker, broker_id, port, epoch=0):
    """Let `broker` know where another one listens."""
    there = BrokerImage(broker_id, {"PLAINTEXT": Endpoint("127.0.0.1", port)}, None, epoch)
    broker.image = broker.image.with_broker(there)


def forget(broker, broker_id):
    """Let another broker be gone from what `broker` knows."""
    left = {each: there for each, there in broker.image.brokers.items() if each != broker_id}
    broker.image = replace(broker.image, brokers=left)


async def peers_of(broker, *, broker_id=1, cluster_id=None, secret=None, asks_for=2, epoch=0):
    """The peers of a broker that does not exist, and that knows the secret unless told another."""
    image = broker.image.with_broker(
        BrokerImage(asks_for, {"PLAINTEXT": Endpoint("127.0.0.1", broker.port)})
    )
    own = Credentials(
        broker_id,
        cluster_id or broker.parts.cluster.view.cluster_id,
        secret or await agree_on_secret(broker.storage.store, random_bytes),
        random_bytes,
        lambda: epoch,
    )
    return Peers(own, lambda: image, "PLAINTEXT", LoopDialer(), PeerLimits())


async def opener_of(broker, broker_id=1):
    """The opening side of a handshake with `broker`, of one that knows its secret."""
    secret = await agree_on_secret(broker.storage.store, random_bytes)
    own = Credentials(
        broker_id, broker.parts.cluster.view.cluster_id, secret, random_bytes, lambda: 0
    )
    return Opener(own, broker.broker_id)


async def refusal(call):
    with pytest.raises(OttlaError) as caught:
        await call
    return caught.value


def connections(broker):
    (listener,) = broker.serving.listeners.open
    return len(listener.connections)
