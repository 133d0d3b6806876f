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
from ottla.coordination.connect import kind_of
from ottla.metadata.image import BrokerImage, Endpoint


def own_image(
    broker_id: BrokerId, settings: BrokerSettings, ports: Mapping[str, int]
) -> BrokerImage:
    """The registration of this broker; `ports` are its ports by listener.

    A host name that was configured is registered as it is. A listener on every interface that
    advertises nothing has, in a cluster of one machine, no host: clients are given the one they
    reached. In a cluster of many machines it is this machine's name.
    """
    advertised = advertised_addresses(settings)
    listening = {address.name: address for address in listen_addresses(settings)}
    store = kind_of(settings.text("coordination.connect"))
    alone = store is None or not store.spans_machines
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
