"""The broker addresses that clients are given.

Every broker gives the same address for a broker, its own included: the one that broker registered
(`endpoints`). librdkafka drops its connection to a broker whose host name changes from one answer
to the next. A broker that registered no host (it listens on every interface of the only machine
of its cluster) is named with the host at which the client reached the broker it asks.
"""

from collections.abc import Iterable
from typing import NamedTuple, Protocol

from ottla.base.ids import BrokerId
from ottla.metadata.image import BrokerImage, ClusterImage


class BrokerAddress(NamedTuple):
    """A broker as one client sees it."""

    id: BrokerId
    host: str
    port: int
    rack: str | None


class Reached(Protocol):
    """The part of a request that shows how its client reached this broker."""

    @property
    def listener(self) -> str: ...

    @property
    def local_host(self) -> str: ...


def broker_addresses(
    image: ClusterImage, reached: Reached, also: Iterable[BrokerImage] = ()
) -> list[BrokerAddress]:
    """All live brokers in ascending order of id, as this client should see them.

    `also` are other brokers to be named beside them.
    """
    brokers = [*image.brokers.values(), *also]
    return [_address(each, reached) for each in sorted(brokers, key=lambda each: each.id)]


def broker_address(
    image: ClusterImage, broker_id: BrokerId, reached: Reached
) -> BrokerAddress | None:
    """One live broker as this client should see it, or None."""
    found = image.brokers.get(broker_id)
    return None if found is None else _address(found, reached)


def _address(image: BrokerImage, reached: Reached) -> BrokerAddress:
    endpoint = image.endpoints.get(reached.listener) or next(iter(image.endpoints.values()))
    return BrokerAddress(image.id, endpoint.host or reached.local_host, endpoint.port, image.rack)
