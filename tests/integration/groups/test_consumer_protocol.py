"""Groups of the consumer protocol (KIP-848) with real clients: librdkafka and the Java consumer."""

from collections.abc import Iterator

import confluent_kafka
import pytest
from confluent_kafka import ConsumerGroupState
from confluent_kafka.admin import AdminClient

import ottla.testing
from ottla.wire.messages.consumer_groups import (
    ConsumerGroupDescribeRequest,
    DescribedConsumerGroup,
)
from tests.integration.groups.members import PATIENCE_S, TOPIC, Confluent, KafkaPython, read, settle
from tests.integration.groups.wire_client import WireClient

QUICK = {
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "200",
}


class NextGeneration(Confluent):
    """librdkafka, by the consumer protocol."""

    def __init__(self, bootstrap: str, group: str, **settings: object) -> None:
        self.revoked: set[int] = set()
        self.consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": group,
                "group.protocol": "consumer",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "log_level": 0,
                **{name.replace("_", "."): value for name, value in settings.items()},
            }
        )
        self.consumer.subscribe([TOPIC], on_revoke=self._on_revoke)

    def _on_revoke(
        self, consumer: confluent_kafka.Consumer, given: list[confluent_kafka.TopicPartition]
    ) -> None:
        self.revoked |= {each.partition for each in given}
        consumer.incremental_unassign(given)


@pytest.fixture(scope="module")
def broker() -> Iterator[ottla.testing.Broker]:
    """With 60 records in six partitions of `t`."""
    with ottla.testing.Broker(settings=QUICK) as running:
        running.create_topic(TOPIC, partitions=6)
        producer = confluent_kafka.Producer({"bootstrap.servers": running.bootstrap})
        for number in range(60):
            producer.produce(TOPIC, str(number).encode(), partition=number % 6)
        assert producer.flush(PATIENCE_S) == 0
        yield running


def describe(broker: ottla.testing.Broker, group: str) -> DescribedConsumerGroup:
    with WireClient(broker.port) as wire:
        (described,) = wire.ask(ConsumerGroupDescribeRequest(group_ids=[group]), 1).groups
        assert isinstance(described, DescribedConsumerGroup)
        return described


def test_members_share_and_nobody_gives_up_what_it_keeps(
    broker: ottla.testing.Broker, group: str
) -> None:
    """Each record comes once while members come and go; who stays loses only what it must."""
    first = NextGeneration(broker.bootstrap, group)
    values = settle([first], [6])
    second = NextGeneration(broker.bootstrap, group)
    values += settle([first, second], [3, 3])
    assert len(first.revoked) == 3
    third = NextGeneration(broker.bootstrap, group)
    values += settle([first, second, third], [2, 2, 2])
    kept = first.partitions()
    first.revoked.clear()
    third.close()
    values += settle([first, second], [3, 3])
    assert kept < first.partitions()
    assert first.revoked == set()
    values += read([first, second], 60 - len(set(values)), set(values))
    assert {int(value) for value in values} == set(range(60))
    described = describe(broker, group)
    assert (described.group_state, described.assignor_name) == ("Stable", "uniform")
    first.close()
    second.close()
    assert describe(broker, group).group_state == "Empty"


def test_the_next_member_resumes_where_the_last_one_committed(
    broker: ottla.testing.Broker, group: str
) -> None:
    """Also where the last one spoke the classic protocol: an empty group changes over."""
    offsets = [confluent_kafka.TopicPartition(TOPIC, partition, 9) for partition in range(6)]
    classic = KafkaPython(broker.bootstrap, group)
    settle([classic], [6])
    classic.close()
    middle = NextGeneration(broker.bootstrap, group)
    settle([middle], [6])
    middle.consumer.commit(offsets=offsets, asynchronous=False)
    middle.close()
    last = Confluent(broker.bootstrap, group)
    values = settle([last], [6])
    values += read([last], 6 - len(values), set(values))
    last.close()
    assert sorted(map(int, values)) == [54, 55, 56, 57, 58, 59]


def test_a_static_member_comes_back_to_its_partitions(
    broker: ottla.testing.Broker, group: str
) -> None:
    """What it had waits for it, and the other member is not disturbed."""
    one = NextGeneration(broker.bootstrap, group, group_instance_id="one")
    two = NextGeneration(broker.bootstrap, group, group_instance_id="two")
    settle([one, two], [3, 3])
    share = one.partitions()
    two.revoked.clear()
    one.close()  # A static member says that it will be back.
    again = NextGeneration(broker.bootstrap, group, group_instance_id="one")
    settle([again, two], [3, 3])
    assert again.partitions() == share
    assert two.revoked == set()
    again.close()
    two.close()


def test_a_group_is_listed_and_described_by_its_type(
    broker: ottla.testing.Broker, group: str
) -> None:
    """Administrators see what members have, and delete the group once it is empty."""
    member = NextGeneration(broker.bootstrap, group)
    settle([member], [6])
    admin = AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 0})
    listed = admin.list_consumer_groups().result(PATIENCE_S).valid
    (found,) = [each for each in listed if each.group_id == group]
    assert (found.type.name, found.state) == ("CONSUMER", ConsumerGroupState.STABLE)
    described = admin.describe_consumer_groups([group])[group].result(PATIENCE_S)
    (told,) = described.members
    assert {each.partition for each in told.assignment.topic_partitions} == set(range(6))
    member.close()
    admin.delete_consumer_groups([group])[group].result(PATIENCE_S)
    assert describe(broker, group).error_code == 69  # GROUP_ID_NOT_FOUND
