"""The broker addresses in answers to clients.

All brokers send the same address for a given broker: the one that it registered (`endpoints`).
librdkafka drops its connection to a broker whose host name changes from one answer to the next. In
a cluster of one machine, a broker that listens on every interface registers no host; its clients
get the host at which they reached the broker that answers.
"""

import socket
from collections.abc import Iterable, Mapping
from typing import NamedTuple, Protocol

from ottla.base.ids import BrokerId
from ottla.base.settings import BrokerSettings
from ottla.base.settings.listeners import advertised_addresses, is_wildcard, listen_addresses
from ottla.coordination.connect import kind_of
from ottla.metadata.image import BrokerImage, ClusterImage, Endpoint


def own_image(
    broker_id: BrokerId, settings: BrokerSettings, ports: Mapping[str, int]
) -> BrokerImage:
    """Build the registration of this broker; `ports` maps listener names to ports.

    A configured host name is registered unchanged. For a listener on every interface without an
    advertised address, the host is this machine's name, or empty in a cluster of one machine;
    clients then get the host that they reached.
    """
    advertised = advertised_addresses(settings)
    listening = {address.name: address for address in listen_addresses(settings)}
    kind = kind_of(settings.text("coordination.connect"))
    alone = kind is None or not kind.spans_machines
    endpoints: dict[str, Endpoint] = {}
    for name, port in ports.items():
        own, address = advertised.get(name), listening[name]
        if own is not None:
            host, port = own.host, own.port or port
        elif not is_wildcard(address.host):
            host = address.host
        else:
            host = "" if alone else socket.getfqdn()
        endpoints[name] = Endpoint(host, port, address.protocol)
    rack = settings.value("broker.rack")
    return BrokerImage(broker_id, endpoints, None if rack is None else str(rack))


class BrokerAddress(NamedTuple):
    """The address of a broker in an answer to one client."""

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
    """Return the addresses of all live brokers for this client, in ascending order of id.

    The brokers in `also` are included, although they are not live.
    """
    brokers = [*image.brokers.values(), *also]
    return [_address(each, reached) for each in sorted(brokers, key=lambda each: each.id)]


def broker_address(
    image: ClusterImage, broker_id: BrokerId, reached: Reached
) -> BrokerAddress | None:
    """Return the address of a live broker for this client; None if it is not live."""
    found = image.brokers.get(broker_id)
    return None if found is None else _address(found, reached)


def _address(image: BrokerImage, reached: Reached) -> BrokerAddress:
    endpoint = image.endpoints.get(reached.listener) or next(iter(image.endpoints.values()))
    return BrokerAddress(image.id, endpoint.host or reached.local_host, endpoint.port, image.rack)


# How long a departed broker is listed. Within this time librdkafka has tried to connect several
# times (`reconnect.backoff.max.ms`, 10 s).
_NAMED_FOR_MS = 60_000
_LIBRDKAFKA = ("rdkafka", "confluent-kafka")


class Departed:
    """The brokers that recently left the image, which answers to librdkafka still list."""

    def __init__(self) -> None:
        self._alive: Mapping[BrokerId, BrokerImage] = {}
        # The departed brokers, with the monotonic time at which each left.
        self._left: dict[BrokerId, tuple[BrokerImage, int]] = {}

    def on_image(self, alive: Mapping[BrokerId, BrokerImage], now_ms: int) -> None:
        """Compare the live brokers of a new image with those of the last one."""
        self._left = {
            broker_id: (broker, left_ms)
            for broker_id, (broker, left_ms) in self._left.items()
            if broker_id not in alive and now_ms < left_ms + _NAMED_FOR_MS
        }
        for broker_id, broker in self._alive.items():
            if broker_id not in alive:
                self._left[broker_id] = (broker, now_ms)
        self._alive = alive

    def named_to(self, software: str, now_ms: int) -> list[BrokerImage]:
        """Return the departed brokers to list for a client; `software` is the client's name."""
        if not self._left or not any(name in software for name in _LIBRDKAFKA):
            return []
        return [
            broker for broker, left_ms in self._left.values() if now_ms < left_ms + _NAMED_FOR_MS
        ]
