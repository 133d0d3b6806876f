"""Which of several quotas decides: the same one of Kafka's eight levels in Kafka and here."""

import time
from collections.abc import Iterator

import pytest
from rig import kafka as kafka_rig
from rig.frames import batch
from rig.wire_client import WireClient

import ottla.testing
from ottla.wire.messages import client_quotas
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.wire.messages.topics import CreatableTopic, CreateTopicsRequest

USER, CLIENT = "ANONYMOUS", "tester"
# From the most special to the least; None is the default entity.
LEVELS: list[list[tuple[str, str | None]]] = [
    [("user", USER), ("client-id", CLIENT)],
    [("user", USER), ("client-id", None)],
    [("user", USER)],
    [("user", None), ("client-id", CLIENT)],
    [("user", None), ("client-id", None)],
    [("user", None)],
    [("client-id", CLIENT)],
    [("client-id", None)],
]
TINY, HUGE = 1.0, 1e12
PATIENCE_S = 120


@pytest.fixture(scope="module")
def ports() -> Iterator[tuple[int, int]]:
    """Kafka's and ours; both have a topic `t`."""
    if reason := kafka_rig.available():
        pytest.skip(reason)
    with kafka_rig.kafka(quick=True) as theirs, ottla.testing.Broker() as ours:
        for port in (theirs.port, ours.port):
            with WireClient(port) as client:
                topic = CreatableTopic(name="t", num_partitions=1, replication_factor=1)
                client.call(CreateTopicsRequest(topics=[topic], timeout_ms=60_000), 7)
        yield theirs.port, ours.port


def alter(client: WireClient, level: int, rate: float) -> None:
    parts = [
        client_quotas.EntityData(entity_type=kind, entity_name=name) for kind, name in LEVELS[level]
    ]
    op = client_quotas.OpData(key="producer_byte_rate", value=rate)
    request = client_quotas.AlterClientQuotasRequest(
        entries=[client_quotas.EntryData(entity=parts, ops=[op])], validate_only=False
    )
    assert client.call(request, 1).entries[0].error_code == 0


def is_throttled(port: int) -> bool:
    """Of a connection of its own: one that is throttled is not read for a while."""
    records = bytes(batch(200, 100, int(time.time() * 1000)).data)
    request = ProduceRequest(
        acks=1,
        timeout_ms=60_000,
        topic_data=[
            TopicProduceData(
                name="t", partition_data=[PartitionProduceData(index=0, records=records)]
            )
        ],
    )
    with WireClient(port, client_id=CLIENT) as client:
        throttle_time_ms: int = client.call(request, 9).throttle_time_ms
        return throttle_time_ms > 0


def wait_until(port: int, throttled: bool) -> None:
    """A broker of Kafka applies quotas a moment after it has answered."""
    deadline_s = time.monotonic() + PATIENCE_S
    while is_throttled(port) is not throttled:
        assert time.monotonic() < deadline_s, f"throttled is not {throttled}"
        time.sleep(0.01)


@pytest.mark.parametrize("side", [0, 1], ids=["kafka", "ottla"])
def test_the_most_special_level_decides(ports: tuple[int, int], side: int) -> None:
    """From the least special level on: each hides all that are set below it."""
    port = ports[side]
    with WireClient(port) as client:
        for level in reversed(range(len(LEVELS))):
            alter(client, level, TINY)
            wait_until(port, throttled=True)
            alter(client, level, HUGE)
            wait_until(port, throttled=False)
            # What was set below has no effect any more.
            for below in range(level + 1, len(LEVELS)):
                alter(client, below, TINY)
            # Some times, since Kafka may have to apply it yet.
            assert [is_throttled(port) for _ in range(10)] == [False] * 10
            for below in range(level + 1, len(LEVELS)):
                alter(client, below, HUGE)
