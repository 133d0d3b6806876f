"""What groups know outlives the broker, and Kafka's own tool can read it."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from rig import kafka as kafka_rig
from rig.broker import ottla as ottla_process
from rig.probe import free_port
from rig.tools import DUMP_LOG, Tools, tools

import ottla.testing
from ottla.base.errors import ErrorCode
from ottla.group.records.stored import partition_of
from ottla.wire.messages.classic_membership import (
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    LeaveGroupRequest,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
)
from ottla.wire.messages.groups import ListGroupsRequest
from tests.integration.groups.conftest import GroupsBroker
from tests.integration.groups.test_rebalance import commit, committed
from tests.integration.groups.test_versions import join, stable
from tests.integration.groups.wire_client import WireClient


@pytest.fixture(scope="module")
def jvm() -> Iterator[Tools]:
    if reason := kafka_rig.available():
        pytest.skip(reason)
    with tools() as running:
        yield running


def _heartbeat(wire: WireClient, group: str, member_id: str, generation: int) -> int:
    request = HeartbeatRequest(group_id=group, generation_id=generation, member_id=member_id)
    code: int = wire.ask(request, 4).error_code
    return code


def test_group_goes_on_after_a_crash(tmp_path: Path, group: str) -> None:
    """kill -9: acknowledged offsets are there, members keep ids, shares and sessions (S28)."""
    port = free_port()
    with ottla_process(folder=tmp_path, port=port) as node:
        admin = AdminClient({"bootstrap.servers": node.bootstrap, "log_level": 0})
        admin.create_topics([NewTopic("t", 3)])["t"].result(90)
        with WireClient(port) as wire:
            wire.find_coordinator(group)
            member_id = stable(wire, group)
            for offset in range(1, 51):
                assert commit(wire, group, member_id, 1, offset) == ErrorCode.NONE
            node.process.kill()
    with ottla_process(folder=tmp_path, port=port), WireClient(port) as wire:
        wire.find_coordinator(group)
        assert committed(wire, group) == 50
        assert _heartbeat(wire, group, member_id, 1) == ErrorCode.NONE
        assert commit(wire, group, member_id, 1, 51) == ErrorCode.NONE
        assert join(wire, group, member_id=member_id).generation_id == 2


def test_groups_survive_an_orderly_restart(tmp_path: Path, group: str) -> None:
    """Empty and simple groups too; nothing that was deleted comes back."""
    names = [f"{group}-{number}" for number in range(6)]
    with ottla.testing.Broker(storage=tmp_path) as broker:
        broker.create_topic("t", partitions=3)
        with WireClient(broker.port) as wire:
            wire.find_coordinator(group)
            for number, name in enumerate(names):
                assert commit(wire, name, "", -1, number) == ErrorCode.NONE
            member_id = stable(wire, group)
            wire.ask(LeaveGroupRequest(group_id=group, member_id=member_id), 0)
    with ottla.testing.Broker(storage=tmp_path) as broker, WireClient(broker.port) as wire:
        wire.find_coordinator(group)
        assert [committed(wire, name) for name in names] == [0, 1, 2, 3, 4, 5]
        listed = wire.ask(ListGroupsRequest(), 4).groups
        assert sorted((each.group_id, each.protocol_type, each.group_state) for each in listed) == [
            (group, "consumer", "Empty"),
            *((name, "", "Empty") for name in names),
        ]
        # The group was in generation 2 when it became empty; it does not begin anew.
        assert join(wire, group).generation_id == 3


def test_offsets_of_a_deleted_topic_are_forgotten(
    groups_broker: GroupsBroker, wire: WireClient, group: str
) -> None:
    """A new topic of that name is read from its start."""
    settings = {"bootstrap.servers": groups_broker.bootstrap, "log_level": 0}
    admin = AdminClient(settings)
    consumer = confluent_kafka.Consumer({**settings, "group.id": group})
    for expected in (-1001, -1001):
        admin.create_topics([NewTopic("short-lived", 1)])["short-lived"].result(90)
        partition = confluent_kafka.TopicPartition("short-lived", 0)
        assert consumer.committed([partition], timeout=60)[0].offset == expected
        stored = confluent_kafka.TopicPartition("short-lived", 0, 5)
        consumer.commit(offsets=[stored], asynchronous=False)
        assert consumer.committed([partition], timeout=60)[0].offset == 5
        admin.delete_topics(["short-lived"])["short-lived"].result(90)
    consumer.close()


def test_kafkas_own_tool_reads_the_records(tmp_path: Path, jvm: Tools, group: str) -> None:
    """`kafka-dump-log --offsets-decoder` shows members, shares and offsets."""
    with ottla.testing.Broker(storage=tmp_path) as broker:
        broker.create_topic("t", partitions=3)
        consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": broker.bootstrap,
                "group.id": group,
                "group.instance.id": "one",
                "client.id": "reader",
                "log_level": 0,
            }
        )
        consumer.subscribe(["t"])
        while not consumer.assignment():
            consumer.poll(0.1)
        offset = confluent_kafka.TopicPartition("t", 1, 7, metadata="note")
        consumer.commit(offsets=[offset], asynchronous=False)
        consumer.close()
    folder = tmp_path / f"__consumer_offsets-{partition_of(group, 4)}"
    log = folder / "00000000000000000000.log"
    lines = jvm.run(DUMP_LOG, "--offsets-decoder", "--files", log).ok().splitlines()
    records = [
        tuple(json.loads(part) for part in line.partition("key: ")[2].split(" payload: "))
        for line in lines
        if line.startswith("| offset")
    ]
    (group_key, group_value), (offset_key, offset_value) = records
    assert group_key == {"type": "2", "data": {"group": group}}
    assert group_value["version"] == "3"
    (member,) = group_value["data"]["members"]
    assert (member["groupInstanceId"], member["clientId"], member["clientHost"]) == (
        "one",
        "reader",
        "/127.0.0.1",
    )
    assert member["subscription"]["topics"] == ["t"]
    assert member["assignment"]["assignedPartitions"] == [{"topic": "t", "partitions": [0, 1, 2]}]
    assert offset_key == {"type": "1", "data": {"group": group, "topic": "t", "partition": 1}}
    assert offset_value["version"] == "4"
    # The Python binding of librdkafka sends C's terminator along.
    metadata = offset_value["data"]["metadata"].rstrip("\0")
    assert (offset_value["data"]["offset"], metadata) == (7, "note")


def _join_static(wire: WireClient, group: str, *assignors: str, member_id: str = "") -> Any:
    request = JoinGroupRequest(
        group_id=group,
        session_timeout_ms=60_000,
        rebalance_timeout_ms=60_000,
        member_id=member_id,
        group_instance_id="x",
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name=name, metadata=b"meta") for name in assignors],
    )
    return wire.ask(request, 9)


def _sync_static(wire: WireClient, group: str, assignor: str, joined: Any) -> int:
    share = SyncGroupRequestAssignment(member_id=joined.member_id, assignment=b"share")
    request = SyncGroupRequest(
        group_id=group,
        generation_id=joined.generation_id,
        member_id=joined.member_id,
        group_instance_id="x",
        protocol_type="consumer",
        protocol_name=assignor,
        assignments=[share],
    )
    code: int = wire.ask(request, 5).error_code
    return code


def test_static_member_that_restarts_in_a_rebalance_outlives_a_crash(
    tmp_path: Path, group: str
) -> None:
    """kill -9 between JoinGroup and SyncGroup: the new id is known. Kafka fences it for good."""
    port = free_port()
    with ottla_process(folder=tmp_path, port=port) as node, WireClient(port) as wire:
        wire.find_coordinator(group)
        joined = _join_static(wire, group, "range", "sticky")
        assert _sync_static(wire, group, "range", joined) == ErrorCode.NONE
        # The process was started anew and likes another assignor best: that takes a rebalance.
        joined = _join_static(wire, group, "sticky", "range")
        assert (joined.error_code, joined.generation_id) == (ErrorCode.NONE, 2)
        node.process.kill()
    with ottla_process(folder=tmp_path, port=port), WireClient(port) as wire:
        wire.find_coordinator(group)
        assert _sync_static(wire, group, "sticky", joined) == ErrorCode.ILLEGAL_GENERATION
        again = _join_static(wire, group, "sticky", "range", member_id=joined.member_id)
        assert (again.error_code, again.member_id) == (ErrorCode.NONE, joined.member_id)
        assert _sync_static(wire, group, "sticky", again) == ErrorCode.NONE
