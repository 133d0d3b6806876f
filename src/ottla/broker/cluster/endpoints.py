"""The addresses under which a broker registers."""

import socket
from collections.abc import Mapping

from ottla.base.ids import BrokerId
from ottla.base.settings import BrokerSettings
from ottla.base.settings.listeners import (
    advertised_addresses,
    is_wildcard,
    listen_addresses,
)
from ottla.metadata.image import BrokerImage, Endpoint


def own_image(
    broker_id: BrokerId, settings: BrokerSettings, ports: Mapping[str, int]
) -> BrokerImage:
    """This broker as it registers; `ports` are those it listens on, by listener.

    A host name that was configured is registered as it is. A listener on every interface that
    advertises nothing has, in a cluster of one machine, no host: clients are given the one they
    reached. In a cluster of many machines it is this machine's name.
    """
    advertised = advertised_addresses(settings)
    listening = {address.name: address.host for address in listen_addresses(settings)}
    endpoints: dict[str, Endpoint] = {}
    for name, port in ports.items():
        own = advertised.get(name)
        if own is not None:
            endpoints[name] = Endpoint(own.host, own.port or port)
        elif not is_wildcard(listening[name]):
            endpoints[name] = Endpoint(listening[name], port)
        else:
            alone = not settings.text("coordination.connect").startswith("zookeeper:")
            endpoints[name] = Endpoint("" if alone else socket.getfqdn(), port)
    rack = settings.value("broker.rack")
    return BrokerImage(broker_id, endpoints, None if rack is None else str(rack))
