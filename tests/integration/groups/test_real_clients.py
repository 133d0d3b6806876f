"""Rebalances of unmodified clients, of one library and of several in one group."""

import time
from collections.abc import Callable, Iterator

import confluent_kafka
import pytest

import ottla.testing
from ottla.base.errors import ErrorCode
from ottla.wire.messages.classic_membership import HeartbeatRequest
from ottla.wire.messages.groups import DescribedGroup, DescribeGroupsRequest
from tests.integration.groups.distant import distant_broker
from tests.integration.groups.members import AioKafka, Confluent, KafkaPython, Member, read, settle
from tests.integration.groups.wire_client import WireClient

LIBRARIES = [Confluent, KafkaPython, AioKafka]


@pytest.fixture(scope="module")
def full_broker() -> Iterator[ottla.testing.Broker]:
    """With 60 records in six partitions of `t`."""
    with ottla.testing.Broker() as broker:
        broker.create_topic("t", partitions=6)
        producer = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap, "log_level": 0})
        for number in range(60):
            producer.produce("t", str(number).encode(), partition=number % 6)
        assert producer.flush(120) == 0
        yield broker


def _describe(broker: ottla.testing.Broker, group: str) -> DescribedGroup:
    with WireClient(broker.port) as wire:
        (described,) = wire.ask(DescribeGroupsRequest(groups=[group]), 5).groups
        assert isinstance(described, DescribedGroup)
        return described


@pytest.mark.parametrize("library", LIBRARIES)
def test_members_share_and_take_over(
    full_broker: ottla.testing.Broker, group: str, library: Callable[[str, str], Member]
) -> None:
    """Two share six partitions; when one leaves the other has them all (P11)."""
    bootstrap = full_broker.bootstrap
    first = library(bootstrap, group)
    settle([first], [6])
    second = library(bootstrap, group)
    settle([first, second], [3, 3])
    second.close()
    settle([first], [6])
    first.close()
    assert _describe(full_broker, group).group_state == "Empty"


def test_member_of_kafka_python_joins_while_the_test_is_elsewhere(group: str) -> None:
    """An outcome of its rebalance that comes between two polls of the test is not lost."""
    with distant_broker(answer_s=0.1) as (broker, bootstrap):
        broker.create_topic("t", partitions=3)
        member = KafkaPython(bootstrap, group)
        settle([member, _Elsewhere()], [3, 0])
        member.close()


def test_member_of_kafka_python_joins_once(full_broker: ottla.testing.Broker, group: str) -> None:
    """It knows its topic when it joins: a later look at the same metadata starts no rebalance."""

    def is_first_generation(group: str) -> bool:
        with WireClient(full_broker.port) as wire:
            wire.find_coordinator(group)
            member = KafkaPython(full_broker.bootstrap, group, metadata_max_age_ms=200)
            settle([member], [6])
            deadline_s = time.monotonic() + 1.5
            while time.monotonic() < deadline_s:
                member.poll()
            (entry,) = _describe(full_broker, group).members
            beat = HeartbeatRequest(group_id=group, generation_id=1, member_id=entry.member_id)
            code = wire.ask(beat, 4).error_code
            member.close()
            return bool(code == ErrorCode.NONE)

    # Metadata that are newer to it would show each time; that it lost an answer does not.
    assert any(is_first_generation(f"{group}-{number}") for number in range(5))


class _Elsewhere:
    """No member: what else a test does, for longer than the other member's rebalance lasts."""

    def poll(self) -> list[bytes]:
        time.sleep(0.5)
        return []

    def partitions(self) -> set[int]:
        return set()

    def close(self) -> None:
        pass


def test_members_of_three_libraries_share_one_group(
    full_broker: ottla.testing.Broker, group: str
) -> None:
    """They agree on the range assignor, whoever leads; every record comes at least once (P11)."""
    bootstrap = full_broker.bootstrap
    members: list[Member] = [library(bootstrap, group) for library in LIBRARIES]
    values = settle(members, [2, 2, 2])
    values += read(members, 60 - len(set(values)), set(values))
    assert len(set(values)) == 60
    described = _describe(full_broker, group)
    assert (described.group_state, described.protocol_data) == ("Stable", "range")
    assert {each.client_host for each in described.members} == {"/127.0.0.1"}
    assert len(described.members) == 3
    members.pop(0).close()
    settle(members, [3, 3])
    for member in members:
        member.close()


def test_static_member_restarts_without_a_rebalance(
    full_broker: ottla.testing.Broker, group: str
) -> None:
    """Its partitions wait for it, and the other member is not disturbed (KIP-345)."""
    bootstrap = full_broker.bootstrap
    one = Confluent(bootstrap, group, group_instance_id="one")
    two = Confluent(bootstrap, group, group_instance_id="two")
    settle([one, two], [3, 3])
    share = one.partitions()
    before = _describe(full_broker, group)
    one.close()  # A static member does not leave.
    assert _describe(full_broker, group).group_state == "Stable"
    again = Confluent(bootstrap, group, group_instance_id="one")
    settle([again, two], [3, 3])
    after = _describe(full_broker, group)
    assert again.partitions() == share
    assert after.group_state == "Stable"
    ids_before = {each.group_instance_id: each.member_id for each in before.members}
    ids_after = {each.group_instance_id: each.member_id for each in after.members}
    assert ids_before["two"] == ids_after["two"]
    assert ids_before["one"] != ids_after["one"]
    again.close()
    two.close()


def test_next_member_resumes_where_the_last_one_committed(
    full_broker: ottla.testing.Broker, group: str
) -> None:
    """Of another library even: the offset is the group's."""
    first = Confluent(full_broker.bootstrap, group)
    settle([first], [6])
    offsets = [confluent_kafka.TopicPartition("t", partition, 9) for partition in range(6)]
    first.consumer.commit(offsets=offsets, asynchronous=False)
    first.close()
    second = KafkaPython(full_broker.bootstrap, group)
    values = settle([second], [6])
    values += read([second], 6 - len(values), set(values))
    second.close()
    assert sorted(map(int, values)) == [54, 55, 56, 57, 58, 59]
