"""Topics made and moved while a broker is down, asked of Apache Kafka and of us."""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

import pytest
from rig import kafka as kafka_rig
from rig.clusters import Cluster
from rig.kafka_cluster import kafka_cluster
from rig.ottla_cluster import ottla_cluster
from rig.wire_client import WireClient

from ottla.base.errors import ErrorCode
from ottla.wire.messages import reassignments, topics
from ottla.wire.messages.metadata import (
    DescribeTopicPartitionsRequest,
    MetadataRequest,
    MetadataRequestTopic,
    TopicRequest,
)

AWAY = 3
# One in sync is enough, so that each topic can be led.
SETTINGS = {"min.insync.replicas": "1", "auto.create.topics.enable": "false"}
_PATIENCE_MS = 60_000
Assignment = list[list[int]]


class Asked:
    """Requests to one broker; codes as they are answered."""

    def __init__(self, client: WireClient) -> None:
        self._client = client

    def create(
        self, name: str, count: int = -1, factor: int = -1, replicas: Assignment | None = None
    ) -> int:
        topic = topics.CreatableTopic(
            name=name,
            num_partitions=count,
            replication_factor=factor,
            assignments=[
                topics.CreatableReplicaAssignment(partition_index=n, broker_ids=brokers)
                for n, brokers in enumerate(replicas or [])
            ],
        )
        request = topics.CreateTopicsRequest(topics=[topic], timeout_ms=_PATIENCE_MS)
        return self._code(self._client.call(request, 7).topics[0])

    def grow(self, name: str, count: int, replicas: Assignment | None = None) -> int:
        named = topics.CreatePartitionsAssignment
        topic = topics.CreatePartitionsTopic(
            name=name,
            count=count,
            assignments=None if replicas is None else [named(broker_ids=b) for b in replicas],
        )
        request = topics.CreatePartitionsRequest(topics=[topic], timeout_ms=_PATIENCE_MS)
        return self._code(self._client.call(request, 3).results[0])

    def move(self, name: str, replicas: list[int]) -> int:
        partition = reassignments.ReassignablePartition(partition_index=0, replicas=replicas)
        topic = reassignments.ReassignableTopic(name=name, partitions=[partition])
        request = reassignments.AlterPartitionReassignmentsRequest(
            topics=[topic], timeout_ms=_PATIENCE_MS
        )
        answer = self._client.call(request, 1)
        return self._code(answer.responses[0].partitions[0] if answer.responses else answer)

    def partitions(self, name: str) -> list[Any]:
        """Leader, replicas, ISR, ELR and the last known of each."""
        request = DescribeTopicPartitionsRequest(
            topics=[TopicRequest(name=name)], response_partition_limit=100
        )
        (topic,) = self._client.call(request, 0).topics
        return [
            (
                p.leader_id,
                p.replica_nodes,
                sorted(p.isr_nodes),
                p.eligible_leader_replicas or [],
                p.last_known_elr or [],
            )
            for p in sorted(topic.partitions, key=lambda p: p.partition_index)
        ]

    def placed(self, name: str, count: int) -> list[tuple[bool, int, int, set[int]]]:
        """What does not depend on where the placement began, once all partitions are shown.

        Kafka answers a growth before the broker that is asked knows of it.
        """
        deadline_s = time.monotonic() + 60
        while len(found := self.partitions(name)) < count:
            assert time.monotonic() < deadline_s, found
            time.sleep(0.05)
        return [
            (leader == replicas[0], len(replicas), replicas.count(AWAY), set(isr) - set(replicas))
            for leader, replicas, isr, _, _ in found
        ]

    def metadata(self, name: str, version: int) -> list[Any]:
        request = MetadataRequest(topics=[MetadataRequestTopic(name=name)])
        (topic,) = self._client.call(request, version).topics
        return [
            (p.error_code, p.leader_id, p.replica_nodes, p.isr_nodes, p.offline_replicas)
            for p in topic.partitions
        ]

    @staticmethod
    def _code(answer: Any) -> int:
        code: int = answer.error_code
        return code


def story(started: Callable[..., AbstractContextManager[Cluster]]) -> list[Any]:
    """What a cluster says, one of whose three brokers is down for a while."""
    with started(SETTINGS) as cluster:
        with WireClient(cluster.members[1].port) as client:
            asked = Asked(client)
            said: list[Any] = [
                asked.create("alone", replicas=[[AWAY]]),
                asked.create("pair", replicas=[[AWAY, 1]]),
            ]
        cluster.members[AWAY].kill()
        cluster.wait_until(
            lambda: cluster.agree(
                lambda seen: AWAY not in seen.ports and -1 in {p.leader for p in of(seen)},
                ["alone"],
            ),
            "a broker is known to be dead",
        )
        with WireClient(cluster.members[1].port) as client:
            asked = Asked(client)
            said += told_of_the_dead(asked)
            said += made_beside_the_dead(asked)
            controller = client.call(MetadataRequest(topics=[]), 12).controller_id
        with WireClient(cluster.members[controller].port) as client:
            said.append(Asked(client).move("moved", [AWAY]))
            said.append(Asked(client).move("moved", [9]))
        cluster.members[AWAY].start()
        for name in ("three", "two", "named", "alone", "pair", "moved"):
            cluster.wait_until_in_sync(name)
        return said


def of(seen: Any) -> list[Any]:
    return [p for partitions in seen.topics.values() for p in partitions.values()]


def told_of_the_dead(asked: Asked) -> list[Any]:
    said: list[Any] = [asked.partitions("alone"), asked.partitions("pair")]
    for version in (0, 1, 4, 5, 9, 12):
        said += [asked.metadata("alone", version), asked.metadata("pair", version)]
    return said


def made_beside_the_dead(asked: Asked) -> list[Any]:
    said: list[Any] = [
        asked.create("three", 4, 3),
        asked.create("two", 4, 2),
        asked.create("four", 1, 4),
        asked.create("named", replicas=[[AWAY, 1], [1, AWAY]]),
        asked.create("dead", replicas=[[AWAY]]),
        asked.create("strange", replicas=[[1, 9]]),
        asked.grow("three", 6),
        asked.grow("two", 5, [[AWAY, 2]]),
        asked.grow("two", 6, [[AWAY, 9]]),
        asked.grow("alone", 2, [[AWAY]]),
        asked.create("moved", replicas=[[1, 2]]),
    ]
    said += [asked.placed("three", 6), asked.placed("two", 5), asked.partitions("named")]
    return said


def test_a_broker_that_is_down_is_counted_as_in_kafka() -> None:
    """Codes, places, in-sync and eligible replicas; all are whole when it is back."""
    if reason := kafka_rig.available():
        pytest.skip(reason)
    ours = story(ottla_cluster)
    assert ours == story(partial(kafka_cluster, quick=True))
    assert ours[:2] == [0, 0]
    assert ours[2] == [(-1, [AWAY], [], [AWAY], [AWAY])]
    assert ours[4] == [(ErrorCode.LEADER_NOT_AVAILABLE, -1, [], [], [])]
    assert ours[5] == [(ErrorCode.REPLICA_NOT_AVAILABLE, 1, [1], [1], [])]
