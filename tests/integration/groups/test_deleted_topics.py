"""Members of share and consumer groups give back what a deleted topic had, and get its namesake."""

import time
from collections.abc import Callable, Iterator
from typing import Any
from uuid import UUID

import pytest
from confluent_kafka.admin import AdminClient
from rig.wire_client import WireClient

from ottla.base.errors import ErrorCode
from ottla.wire.messages.consumer_groups import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
    TopicPartitions,
)
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.integration.groups.conftest import GroupsBroker

PATIENCE_S = 90
MEMBER = "AAAAAAAAAAAAAAAAAAAAAg"
Heard = ShareGroupHeartbeatResponse | ConsumerGroupHeartbeatResponse
_LATER = (
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
)


class Member:
    """One member of a group of one kind, which says what it has been given."""

    def __init__(self, client: WireClient, group: str, topic: str, *, shares: bool) -> None:
        self._client = client
        self._group = group
        self._topic = topic
        self._shares = shares
        self.epoch = 0
        self.has: set[tuple[UUID, int]] = set()

    def hear(self) -> None:
        """One heartbeat. What it is told it takes as it is; null changes nothing."""
        topics = [self._topic] if self.epoch == 0 else None
        request: Any
        if self._shares:
            request = ShareGroupHeartbeatRequest(
                group_id=self._group,
                member_id=MEMBER,
                member_epoch=self.epoch,
                subscribed_topic_names=topics,
            )
        else:
            owned: dict[UUID, list[int]] = {}
            for topic_id, index in sorted(self.has):
                owned.setdefault(topic_id, []).append(index)
            request = ConsumerGroupHeartbeatRequest(
                group_id=self._group,
                member_id=MEMBER,
                member_epoch=self.epoch,
                rebalance_timeout_ms=60_000 if self.epoch == 0 else -1,
                subscribed_topic_names=topics,
                topic_partitions=[
                    TopicPartitions(topic_id=topic_id, partitions=indexes)
                    for topic_id, indexes in owned.items()
                ],
            )
        answer: Heard = self._client.call(request, 1)
        if answer.error_code in _LATER:
            return
        assert answer.error_code == ErrorCode.NONE, answer
        self.epoch = answer.member_epoch
        if answer.assignment is not None:
            self.has = {
                (each.topic_id, index)
                for each in answer.assignment.topic_partitions
                for index in each.partitions
            }

    def hear_until(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not condition():
            if time.monotonic() > deadline:
                raise TimeoutError(f"it has {self.has} in epoch {self.epoch}")
            self.hear()
            time.sleep(0.02)


@pytest.fixture
def client(groups_broker: GroupsBroker, group: str) -> Iterator[WireClient]:
    with WireClient(groups_broker.port) as made:
        asked = FindCoordinatorRequest(key_type=0, coordinator_keys=[group])
        deadline = time.monotonic() + PATIENCE_S
        while made.call(asked, 4).coordinators[0].error_code:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        yield made


def topic_id(client: WireClient, name: str) -> UUID:
    asked = MetadataRequest(
        topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=False
    )
    found: UUID = client.call(asked, 12).topics[0].topic_id
    return found


@pytest.mark.parametrize("shares", [True, False], ids=["share group", "consumer group"])
def test_partitions_of_a_deleted_topic_are_taken_back(
    groups_broker: GroupsBroker, client: WireClient, group: str, *, shares: bool
) -> None:
    """The member is told of it once, and gets those of a topic that is made by the same name."""
    name = f"deleted-{group}"
    admin = AdminClient({"bootstrap.servers": groups_broker.bootstrap, "log_level": 0})
    groups_broker.create_topic(name, 2)
    member = Member(client, group, name, shares=shares)
    before = topic_id(client, name)
    member.hear_until(lambda: member.has == {(before, 0), (before, 1)})
    epoch = member.epoch
    admin.delete_topics([name], operation_timeout=30)[name].result(120)
    member.hear_until(lambda: not member.has and member.epoch > epoch)
    groups_broker.create_topic(name, 1)
    after = topic_id(client, name)
    assert after != before
    member.hear_until(lambda: member.has == {(after, 0)})


@pytest.mark.parametrize("shares", [True, False], ids=["share group", "consumer group"])
def test_a_topic_that_is_made_anew_between_two_heartbeats_is_another_one(
    groups_broker: GroupsBroker, client: WireClient, group: str, *, shares: bool
) -> None:
    """Its id is: the partitions of the first are taken back, and those of the second given."""
    name = f"renewed-{group}"
    admin = AdminClient({"bootstrap.servers": groups_broker.bootstrap, "log_level": 0})
    groups_broker.create_topic(name, 2)
    member = Member(client, group, name, shares=shares)
    before = topic_id(client, name)
    member.hear_until(lambda: member.has == {(before, 0), (before, 1)})
    admin.delete_topics([name], operation_timeout=30)[name].result(120)
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            groups_broker.create_topic(name, 2)
            break
        except Exception:  # noqa: BLE001  # The deletion goes on for a moment.
            assert time.monotonic() < deadline
            time.sleep(0.05)
    after = topic_id(client, name)
    member.hear_until(lambda: member.has == {(after, 0), (after, 1)})
