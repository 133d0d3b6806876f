"""Every broker says who lives and who leads, and producers go straight to the leader."""

import socket
from collections.abc import Callable

from rig.broker import ottla
from rig.nodes import Node
from rig.probe import free_port
from rig.wire_client import WireClient

from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic

from .raw import batch, produce

VERSION = 12


def test_metadata_names_a_leader_for_each_partition_and_its_address_takes_records(
    node: Node, client: WireClient, make_topic: Callable[..., str]
) -> None:
    """Leader, in-sync replicas and address of every partition in one answer (P5)."""
    topic = make_topic(partitions=3)
    answer = client.call(MetadataRequest(topics=[MetadataRequestTopic(name=topic)]), VERSION)
    (described,) = answer.topics
    addresses = {broker.node_id: (broker.host, broker.port) for broker in answer.brokers}
    assert addresses == {1: ("127.0.0.1", node.port)}
    partitions = {part.partition_index: part for part in described.partitions}
    assert sorted(partitions) == [0, 1, 2]
    for part in partitions.values():
        assert (part.leader_id, part.replica_nodes, part.isr_nodes) == (1, [1], [1])
    _, port = addresses[partitions[0].leader_id]
    with WireClient(port) as leader:
        assert produce(leader, topic, batch(b"to the leader")) == 0


def test_a_broker_is_where_its_client_found_it() -> None:
    """Without advertised.listeners each client is told the address it came by (P5)."""
    port = free_port()
    settings = {"listeners": f"PLAINTEXT://0.0.0.0:{port}"}
    with ottla(settings=settings, port=port), WireClient(port) as one:
        told = one.call(MetadataRequest(topics=[]), VERSION).brokers
        assert [(broker.host, broker.port) for broker in told] == [("127.0.0.1", port)]
        one.socket.close()
        one.socket = socket.create_connection(("127.0.0.2", port), 60)
        told = one.call(MetadataRequest(topics=[]), VERSION).brokers
        assert [(broker.host, broker.port) for broker in told] == [("127.0.0.2", port)]
