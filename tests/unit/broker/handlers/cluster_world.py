"""Broker 1 as the controller of its cluster: what clients change through it takes effect."""

import random
from typing import Any, cast

from ottla.broker.cluster.addresses import Departed
from ottla.broker.cluster.handshake import Credentials
from ottla.broker.cluster.orders import Control
from ottla.broker.cluster.peers import PeerLimits, Peers
from ottla.broker.cluster.registration import prepare, register
from ottla.broker.configs.configs import Configs
from ottla.broker.configs.features import Features
from ottla.broker.controller import Controller
from ottla.broker.partitions.log_config import election_rules
from ottla.broker.quotas.quotas import Quotas
from ottla.broker.topics.topics import Topics
from ottla.metadata.image import BrokerImage, Endpoint
from ottla.metadata.topic_plan import RequestedTopic
from ottla.replica.registration import Registration

from .coordinators_world import NoDialer
from .replica_world import CLUSTER, OWN, Hosting, call
from .replica_world import World as ReplicaWorld
from .replica_world import play as play_in

__all__ = ["World", "call", "play"]

_SESSION_MS = 18_000


class World(ReplicaWorld):
    """Alone in its cluster, unless the test lets its view `know` others, which never answer."""

    def __init__(self, settings=None):
        super().__init__(settings, broker_epoch=0)
        own = Credentials(
            OWN, CLUSTER, b"secret", random.Random(1).randbytes, lambda: self.fence.broker_epoch
        )
        self.peers = Peers(
            own, lambda: self.view.image, "PLAINTEXT", cast("Any", NoDialer()), PeerLimits()
        )
        control = Control(OWN, self.peers, self.orders)
        self.controller = Controller(
            self.store,
            OWN,
            self.settings,
            self.clock,
            self.decisions,
            lambda topic: election_rules(topic, self.view.image, self.settings),
            control.deliver,
            control.reaches,
            control.answers,
            lambda: None,
        )
        self.topics = Topics(
            self.view,
            self.store,
            self.settings,
            self.updates,
            random_bytes=random.Random(2).randbytes,
        )
        self.configs = Configs(
            self.view,
            self.updates,
            self.store,
            self.settings,
            Hosting(self.partitions),
            self.clock,
            self.controller.on_rules_changed,
        )
        self.features = Features(self.view, self.updates, self.store, self.clock)
        self.quotas = Quotas(self.settings, self.store, self.clock, self.runtime.loop)
        self.departed = Departed()

    async def begin(self):
        """Register, become controller, and learn of it."""
        await prepare(self.store)
        session = await self.store.open_session(_SESSION_MS)
        endpoints = {"PLAINTEXT": Endpoint("broker1", 9092)}
        epoch = await register(self.store, session, BrokerImage(OWN, endpoints, "r1"), 0)
        self.fence.registered(epoch)
        self.own.current = Registration(OWN, epoch, _SESSION_MS)
        await self.controller.stand(session)
        assert await self.updates.wait_for(lambda image: OWN in image.brokers, 60)

    async def make(self, name, partitions=1, **configs):
        """Create a topic; its id."""
        own = {key.replace("_", "."): value for key, value in configs.items()}
        (outcome,) = await self.topics.create([RequestedTopic(name, partitions, 1, configs=own)])
        assert outcome.error is None, outcome.error
        return outcome.topic.id

    async def close(self):
        self.topics.close()
        await self.controller.stop()
        self.peers.close()
        await super().close()


def play(scenario, settings=None):
    """Run `scenario(world)` once broker 1 is controller."""

    async def begun(world):
        await world.begin()
        await scenario(world)

    play_in(begun, settings, kind=World)
