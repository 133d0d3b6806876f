"""Asks the group coordinator whether a member of a share group is assigned a partition.

If a record of `__share_group_state` is damaged, the state of a share partition can be lost. The
group coordinator has recorded that the state was initialized and does not initialize it again, so
the leader of the partition does, but only if a member is assigned the partition now: a fetch that
arrives after the group was deleted must not create the state again.
"""

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import BrokerId
from ottla.broker.cluster.peers import Peers
from ottla.broker.groups import Groups
from ottla.share.records import ShareKey
from ottla.wire.messages.consumer_groups import DescribedShareGroup, ShareGroupDescribeRequest

_TIMEOUT_MS = 5_000


class AssignmentLookup:
    """Gets descriptions of share groups from their coordinators, at this broker or another."""

    def __init__(self, broker_id: BrokerId, groups: Groups, peers: Peers) -> None:
        self._broker_id = broker_id
        self._groups = groups
        self._peers = peers

    async def epoch_of(self, key: ShareKey) -> int | None:
        """The group's epoch if a member is assigned the partition, else None. Raises OttlaError."""
        group = await self._describe(key.group_id)
        return group.group_epoch if _is_assigned(group, key) else None

    async def _describe(self, group_id: str) -> DescribedShareGroup:
        leader = self._groups.coordinator_of(group_id)
        if leader is None:
            raise OttlaError(
                ErrorCode.COORDINATOR_NOT_AVAILABLE,
                f"group {group_id} has no coordinator now: ottla cluster health",
            )
        if leader == self._broker_id:
            return self._groups.describe_share_group(group_id)
        request = ShareGroupDescribeRequest(group_ids=[group_id])
        answer = await self._peers.request(leader, request, timeout_ms=_TIMEOUT_MS)
        group: DescribedShareGroup = answer.groups[0]
        if group.error_code not in (ErrorCode.NONE, ErrorCode.GROUP_ID_NOT_FOUND):
            code = ErrorCode(group.error_code)
            raise OttlaError(code, f"the coordinator of group {group_id} answers {code.name}")
        return group


def _is_assigned(group: DescribedShareGroup, key: ShareKey) -> bool:
    return any(
        topic.topic_id == key.topic_id and key.partition in topic.partitions
        for member in group.members
        for topic in member.assignment.topic_partitions
    )
