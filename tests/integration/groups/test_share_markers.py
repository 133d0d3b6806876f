"""Offsets of transaction markers: Kafka gives them to members of share groups, Ottla does not.

A deliberate difference (docs/reference/differences.md). Members see it in commit callbacks alone.
"""

import os
import time

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)
from rig.wire_client import WireClient

from ottla.base.errors import ErrorCode
from ottla.wire.messages.share_records import FetchPartition, FetchTopic, ShareFetchRequest
from tests.integration.groups.conftest import GroupsBroker
from tests.integration.groups.test_deleted_topics import (
    MEMBER,
    PATIENCE_S,
    Member,
    client,
    topic_id,
)

__all__ = ["client"]
ON_KAFKA = os.environ.get("OTTLA_TEST_BROKER") == "kafka"


def produce(bootstrap: str, topic: str) -> None:
    """Offsets 0 and 1 committed, 2 a marker; 3 to 5 aborted, 6 a marker; 7 outside of both."""
    settings = {"bootstrap.servers": bootstrap, "log_level": 0}
    producer = Producer({**settings, "transactional.id": topic})
    producer.init_transactions(PATIENCE_S)
    for count, end in ((2, producer.commit_transaction), (3, producer.abort_transaction)):
        producer.begin_transaction()
        for _ in range(count):
            producer.produce(topic, b"in a transaction")
        assert producer.flush(PATIENCE_S) == 0
        end(PATIENCE_S)
    plain = Producer(settings)
    plain.produce(topic, b"plain")
    assert plain.flush(PATIENCE_S) == 0


@pytest.mark.parametrize(
    ("isolation", "by_kafka", "here"),
    [
        ("read_committed", {0, 1, 2, 6, 7}, {0, 1, 7}),
        ("read_uncommitted", set(range(8)), {0, 1, 3, 4, 5, 7}),
    ],
)
def test_markers_are_given_to_members_by_kafka_alone(
    groups_broker: GroupsBroker,
    client: WireClient,  # The fixture.
    group: str,
    isolation: str,
    by_kafka: set[int],
    here: set[int],
) -> None:
    """With both isolation levels; aborted records only to those who want them."""
    name = f"marked-{group}"
    groups_broker.create_topic(name)
    admin = AdminClient({"bootstrap.servers": groups_broker.bootstrap, "log_level": 0})
    chosen = {"share.auto.offset.reset": "earliest", "share.isolation.level": isolation}
    entries = [
        ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET)
        for key, value in chosen.items()
    ]
    resource = ConfigResource(ResourceType.GROUP, group, incremental_configs=entries)
    admin.incremental_alter_configs([resource])[resource].result(PATIENCE_S)
    produce(groups_broker.bootstrap, name)
    member = Member(client, group, name, shares=True)
    of = topic_id(client, name)
    member.hear_until(lambda: member.has == {(of, 0)})
    wanted = by_kafka if ON_KAFKA else here
    acquired: set[int] = set()
    epoch = 0
    deadline = time.monotonic() + PATIENCE_S
    while len(acquired) < len(wanted):
        assert time.monotonic() < deadline, acquired
        topics = [FetchTopic(topic_id=of, partitions=[FetchPartition(partition_index=0)])]
        request = ShareFetchRequest(
            group_id=group,
            member_id=MEMBER,
            share_session_epoch=epoch,
            max_wait_ms=1_000,
            min_bytes=1,
            max_bytes=1 << 20,
            max_records=500,
            batch_size=500,
            topics=topics if epoch == 0 else [],
        )
        answer = client.call(request, 1)
        assert answer.error_code == ErrorCode.NONE
        epoch += 1
        for each in (one for topic in answer.responses for one in topic.partitions):
            for run in each.acquired_records:
                acquired |= set(range(run.first_offset, run.last_offset + 1))
    assert acquired == wanted
