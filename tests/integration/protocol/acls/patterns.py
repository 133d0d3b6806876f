"""A member of a consumer group that subscribes by a pattern, and may not see all that matches."""

import time
from uuid import UUID

from rig.wire_client import WireClient

from ottla.security.acl import Acl, ResourcePattern
from ottla.security.names import AclOperation, AclResource, Permission
from ottla.wire.messages.consumer_groups import ConsumerGroupHeartbeatRequest
from ottla.wire.messages.topics import (
    CreatableTopic,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DeleteTopicState,
)
from tests.integration.protocol.acls.matrix import ADMIN, CLIENT, WHO, Subject

GROUP, SHOWN, HIDDEN = "acl-pattern-readers", "acl-pattern-shown", "acl-pattern-hidden"
_PATIENCE_S = 60.0


def _allow(kind: AclResource, name: str, operation: AclOperation) -> Acl:
    return Acl(ResourcePattern(kind, name), WHO, CLIENT, operation, Permission.ALLOW)


_GROUP_READ = _allow(AclResource.GROUP, GROUP, AclOperation.READ)


def assigned_in_turn(port: int, *steps: frozenset[str]) -> list[set[str]]:
    """What a member has once its assignment has the topics of a step, which it may see then."""
    subject = Subject(port)
    found = []
    with (
        WireClient(port, from_host=ADMIN) as admin,
        WireClient(port, from_host=CLIENT) as client,
    ):
        topics = [
            CreatableTopic(name=name, num_partitions=1, replication_factor=1)
            for name in (SHOWN, HIDDEN)
        ]
        created = admin.call(CreateTopicsRequest(topics=topics, timeout_ms=30_000), 7).topics
        names = {one.topic_id: one.name for one in created}
        member = _Member(client, names)
        for visible in steps:
            shown = {_allow(AclResource.TOPIC, one, AclOperation.DESCRIBE) for one in visible}
            subject.set_rules(frozenset({_GROUP_READ, *shown}))
            found.append(member.until_it_has(visible))
        member.leave()
        states = [DeleteTopicState(name=name) for name in (SHOWN, HIDDEN)]
        admin.call(DeleteTopicsRequest(topics=states, timeout_ms=30_000), 6)
    subject.set_rules(frozenset())
    subject.close()
    return found


class _Member:
    def __init__(self, client: WireClient, names: dict[UUID, str]) -> None:
        self._client = client
        self._names = names
        self._epoch = 0
        self._has: set[str] = set()

    def until_it_has(self, wanted: frozenset[str]) -> set[str]:
        deadline = time.monotonic() + _PATIENCE_S
        self._beat()
        while self._has != wanted and time.monotonic() < deadline:
            time.sleep(0.1)
            self._beat()
        return self._has

    def leave(self) -> None:
        self._epoch = -1
        self._beat()

    def _beat(self) -> None:
        joins = self._epoch == 0
        answer = self._client.call(
            ConsumerGroupHeartbeatRequest(
                group_id=GROUP,
                member_id="pattern-member",
                member_epoch=self._epoch,
                rebalance_timeout_ms=60_000 if joins else -1,
                subscribed_topic_regex="acl-pattern-.*" if joins else None,
                topic_partitions=[] if joins else None,
            ),
            1,
        )
        assert answer.error_code == 0, answer
        self._epoch = answer.member_epoch
        if answer.assignment is not None:
            self._has = {self._names[one.topic_id] for one in answer.assignment.topic_partitions}
