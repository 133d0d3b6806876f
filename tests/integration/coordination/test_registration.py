"""What a broker registers, as other programs read it in both stores."""

import asyncio
import json
from datetime import UTC, datetime

import pytest
from kazoo.client import KazooClient

from ottla.base.settings import BrokerSettings
from ottla.broker.process.broker import Broker
from ottla.coordination.connect import connect
from ottla.operations.certificates import make_development_files
from ottla.storage.disk.memory_filesystem import MemoryFileSystem

PATH = "/brokers/ids/1"


def settings_of(address, folder):
    """Listeners of all four security protocols; the first names the third one's users."""
    files = make_development_files(folder / "certs", [], "alice", datetime.now(UTC))
    return BrokerSettings(
        {
            "broker.id": "1",
            "log.dirs": "/logs",
            "coordination.connect": address,
            "listeners": "CLEAR://127.0.0.1:0,SSL://127.0.0.1:0,LOGIN://127.0.0.1:0,"
            "BOTH://127.0.0.1:0",
            "listener.security.protocol.map": "CLEAR:PLAINTEXT,SSL:SSL,LOGIN:SASL_PLAINTEXT,"
            "BOTH:SASL_SSL",
            "inter.broker.listener.name": "CLEAR",
            "sasl.enabled.mechanisms": "SCRAM-SHA-512",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(files.server),
        }
    )


async def while_serving(settings, look):
    """What `look` finds while a broker with these settings is there."""
    broker = Broker(settings, filesystem=MemoryFileSystem())
    await broker.start()
    try:
        return await look()
    finally:
        await broker.stop()


@pytest.mark.parametrize("kind", ["sqlite", "zookeeper"])
def test_the_registration_names_the_security_protocol_of_each_listener(kind, request, tmp_path):
    """Kafka's tools of ZooKeeper choose by them how to connect."""
    hosts = request.getfixturevalue("server").hosts if kind == "zookeeper" else ""
    address = f"zookeeper://{hosts}/protocols" if hosts else f"sqlite://{tmp_path}/store.sqlite"

    def by_kazoo():
        client = KazooClient(hosts)
        client.start()
        try:
            return client.get(f"/protocols{PATH}")[0]
        finally:
            client.stop()
            client.close()

    async def look():
        if hosts:
            return await asyncio.to_thread(by_kazoo)
        store = await connect(address)
        node = await store.get(PATH)
        await store.close()
        return node.data

    data = asyncio.run(while_serving(settings_of(address, tmp_path), look))
    held = json.loads(data)
    assert held["listener_security_protocol_map"] == {
        "CLEAR": "PLAINTEXT",
        "SSL": "SSL",
        "LOGIN": "SASL_PLAINTEXT",
        "BOTH": "SASL_SSL",
    }
    assert held["host"] == "127.0.0.1"
    assert f"CLEAR://127.0.0.1:{held['port']}" in held["endpoints"]
