"""Requests that name the same thing twice show no more than those that name it once."""

import time
from uuid import UUID

from rig.broker import ottla
from rig.wire_client import WireClient

from ottla.security.acl import Acl, ResourcePattern
from ottla.security.names import AclOperation, AclResource, Permission
from ottla.wire.messages import group_offsets, share_group_offsets
from ottla.wire.messages.consumer_groups import ShareGroupHeartbeatRequest
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.integration.protocol.acls.cases import CASES, GROUP, TOPIC
from tests.integration.protocol.acls.matrix import ADMIN, CLIENT, SETTINGS, WHO, Subject

_SHARE_GROUP = "acl-sharers"
_PATIENCE_S = 60.0


def test_a_list_of_all_topics_beside_a_list_of_none_hides_topics() -> None:
    """OffsetFetch and DescribeShareGroupOffsets by a client that may DESCRIBE only the group.

    A group that is named twice is answered once.
    """
    with ottla(settings=SETTINGS) as node:
        subject = Subject(node.port)
        (commit,) = [case for case in CASES if case.name == "OffsetCommit"]
        with WireClient(node.port, from_host=ADMIN) as admin:
            admin.call(commit.make(subject.topic_id), 8)
            _share(admin)
            subject.set_rules(frozenset(_describes(name) for name in (GROUP, _SHARE_GROUP)))
            for host, topics in ((ADMIN, 2), (CLIENT, 0)):
                with WireClient(node.port, from_host=host) as client:
                    assert _committed(client) == topics // 2, host
                    assert _shared(client) == topics // 2, host
        subject.close()


def _describes(group: str) -> Acl:
    pattern = ResourcePattern(AclResource.GROUP, group)
    return Acl(pattern, WHO, CLIENT, AclOperation.DESCRIBE, Permission.ALLOW)


def _share(admin: WireClient) -> None:
    """A share group that reads the topic."""
    joining = ShareGroupHeartbeatRequest(
        group_id=_SHARE_GROUP,
        member_id="AAAAAAAAAAAAAAAAAAAAAQ",
        member_epoch=0,
        subscribed_topic_names=[TOPIC],
    )
    deadline = time.monotonic() + _PATIENCE_S
    while (code := admin.call(joining, 1).error_code) or not _shared(admin):
        assert time.monotonic() < deadline, code
        time.sleep(0.05)


def _committed(client: WireClient) -> int:
    """How many topics the answer shows that were not named."""
    group = group_offsets.OffsetFetchRequestGroup
    asked = [group(group_id=GROUP, topics=None), group(group_id=GROUP, topics=[])]
    (once,) = client.call(group_offsets.OffsetFetchRequest(groups=asked), 8).groups
    assert once.error_code == 0
    return len(once.topics)


def _shared(client: WireClient) -> int:
    """As `_committed`; what is named and hidden stays in the answer that it belongs to."""
    group = share_group_offsets.DescribeShareGroupOffsetsRequestGroup
    asked = [group(group_id=_SHARE_GROUP, topics=None), group(group_id=_SHARE_GROUP, topics=[])]
    request = share_group_offsets.DescribeShareGroupOffsetsRequest(groups=asked)
    (once,) = client.call(request, 1).groups
    return len(once.topics)


def test_a_hidden_topic_by_name_and_id_is_refused_as_any_other() -> None:
    """Metadata 10 and 11 have ids that may not be used, and no answer without a name."""
    with ottla(settings=SETTINGS) as node:
        subject = Subject(node.port)
        with WireClient(node.port, from_host=CLIENT) as client:
            for topic_id in (subject.topic_id, UUID(int=5)):
                asked = MetadataRequestTopic(name="acl-new", topic_id=topic_id)
                for version in (10, 11):
                    (found,) = client.call(MetadataRequest(topics=[asked]), version).topics
                    assert (found.error_code, found.name) == (42, "acl-new")
        subject.close()
