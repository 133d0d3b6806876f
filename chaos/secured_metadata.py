"""Metadata of one broker over TLS and SCRAM, as `rig.metadata` has it without."""

from ottla.base.errors import OttlaError
from ottla.client.connection.blocking_connection import BlockingConnection
from ottla.client.connection.security import ClientSecurity
from ottla.client.connection.view import Address
from ottla.wire.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponsePartition,
)
from rig.metadata import Seen, SeenPartition

_LIMIT_S = 2.0


def dial(address: str, security: ClientSecurity) -> BlockingConnection:
    """A connection to one broker, logged in. Raises OttlaError."""
    host, _, port = address.rpartition(":")
    return BlockingConnection(Address(host, int(port)), "chaos", _LIMIT_S, security=security)


def ask_securely(address: str, topics: list[str], security: ClientSecurity) -> Seen:
    """What this broker knows of these topics. Raises OSError while it does not serve."""
    try:
        with dial(address, security) as connection:
            names = [MetadataRequestTopic(name=name) for name in topics]
            request = MetadataRequest(topics=names, allow_auto_topic_creation=False)
            answer = connection.ask(request, MetadataResponse)
    except OttlaError as error:
        raise OSError(error.message) from None
    return Seen(
        {broker.node_id: broker.port for broker in answer.brokers},
        answer.controller_id,
        {
            topic.name: {each.partition_index: _seen(each) for each in topic.partitions}
            for topic in answer.topics
            if topic.name is not None
        },
    )


def _seen(found: MetadataResponsePartition) -> SeenPartition:
    return SeenPartition(
        found.error_code,
        found.leader_id,
        tuple(found.replica_nodes),
        tuple(found.isr_nodes),
    )
