"""Every broker gives the same address for each broker, so that no client sees one move."""

import time

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from rig.wire_client import WireClient

from ottla.wire.messages.cluster import DescribeClusterRequest
from ottla.wire.messages.metadata import MetadataRequest
from tests.system.cli.threaded_cluster import ThreadedCluster

WILDCARD = "PLAINTEXT://0.0.0.0:0"


@pytest.mark.parametrize(
    ("settings", "host"),
    [
        ({"listeners": "PLAINTEXT://localhost:0"}, "localhost"),
        ({"listeners": "PLAINTEXT://127.0.0.1:0"}, "127.0.0.1"),
        ({"listeners": "PLAINTEXT://:0"}, "127.0.0.1"),
        ({"listeners": WILDCARD}, "127.0.0.1"),
        ({"listeners": WILDCARD, "advertised.listeners": "PLAINTEXT://localhost:0"}, "localhost"),
    ],
)
def test_all_brokers_give_the_same_addresses(settings, host):
    """Their own included, in Metadata and in DescribeCluster alike."""
    with ThreadedCluster(settings) as cluster:
        ports = [int(address.rpartition(":")[2]) for address in cluster.bootstrap.split(",")]
        expected = [(index + 1, host, port) for index, port in enumerate(ports)]
        for port in ports:
            with WireClient(port) as client:
                told = client.call(MetadataRequest(topics=[]), 12).brokers
                assert [(b.node_id, b.host, b.port) for b in told] == expected
                told = client.call(DescribeClusterRequest(), 1).brokers
                assert [(b.broker_id, b.host, b.port) for b in told] == expected


def test_librdkafka_keeps_its_connections_where_listeners_have_names():
    """Eight topics made through every broker; no host name is updated on the way."""
    said = []
    with ThreadedCluster({"listeners": "PLAINTEXT://localhost:0"}) as cluster:
        for number, address in enumerate(cluster.bootstrap.split(",")):
            port = address.rpartition(":")[2]
            admin = AdminClient(
                {"bootstrap.servers": f"localhost:{port}", "debug": "broker,metadata"},
                logger=Said(said),
            )
            topics = [NewTopic(f"t-{number}-{index}", 1, 3) for index in range(8)]
            for future in admin.create_topics(topics, request_timeout=60).values():
                future.result(120)
            # Each broker is asked in turn, so that all that they say is compared.
            for _ in range(6):
                assert len(admin.list_topics(timeout=60).brokers) == 3
                admin.poll(0.05)
                time.sleep(0.05)
    assert not [line for line in said if "hostname updated" in line or "hostname changed" in line]


class Said:
    """A logger that keeps what librdkafka says."""

    def __init__(self, said):
        self._said = said

    def log(self, _level, template, *arguments):
        self._said.append(template % arguments)
