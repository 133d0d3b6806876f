"""Where clients are told to find brokers.

With nothing advertised, a client is told the address at which it reached this broker: that one
works from where the client stands, behind containers and forwarded ports alike.
"""

from collections.abc import Iterable
from typing import NamedTuple, Protocol

from ottla.base.ids import BrokerId
from ottla.base.settings import BrokerSettings
from ottla.base.settings.listeners import ListenerAddress, advertised_addresses
from ottla.metadata.image import BrokerImage, ClusterImage


class BrokerAddress(NamedTuple):
    """A broker as one client should see it."""

    id: BrokerId
    host: str
    port: int
    rack: str | None


class Reached(Protocol):
    """What is asked of a request: where it came in."""

    @property
    def listener(self) -> str: ...

    @property
    def local_host(self) -> str: ...

    @property
    def local_port(self) -> int: ...


class Knowing(Protocol):
    """What is asked of a broker."""

    @property
    def settings(self) -> BrokerSettings: ...

    @property
    def broker_id(self) -> BrokerId: ...

    @property
    def image(self) -> ClusterImage: ...


def broker_addresses(
    broker: Knowing, reached: Reached, also: Iterable[BrokerImage] = ()
) -> list[BrokerAddress]:
    """All live brokers in ascending order of their ids, as this client should see them.

    `also` are others to be named beside them.
    """
    advertised = advertised_addresses(broker.settings)
    brokers = [*broker.image.brokers.values(), *also]
    return [
        _address(each, broker, advertised, reached)
        for each in sorted(brokers, key=lambda each: each.id)
    ]


def broker_address(broker: Knowing, broker_id: BrokerId, reached: Reached) -> BrokerAddress | None:
    """One live broker as this client should see it, or None."""
    image = broker.image.brokers.get(broker_id)
    if image is None:
        return None
    return _address(image, broker, advertised_addresses(broker.settings), reached)


def _address(
    image: BrokerImage,
    broker: Knowing,
    advertised: dict[str, ListenerAddress],
    reached: Reached,
) -> BrokerAddress:
    if image.id == broker.broker_id:
        own = advertised.get(reached.listener)
        if own is None:
            return BrokerAddress(image.id, reached.local_host, reached.local_port, image.rack)
        # Port 0 asks for any free port: the one the client reached.
        return BrokerAddress(image.id, own.host, own.port or reached.local_port, image.rack)
    endpoint = image.endpoints.get(reached.listener) or next(iter(image.endpoints.values()))
    return BrokerAddress(image.id, endpoint.host or reached.local_host, endpoint.port, image.rack)
