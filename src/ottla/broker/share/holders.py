"""Whether a member of a share group has a partition, asked of the group's coordinator.

One damaged record of `__share_group_state` can cost the state of a share partition, while the
group's coordinator has noted that it has begun, and so does not begin it again. The leader of the
partition does, but only where a member has the partition now: a fetch that comes after its group
was deleted brings nothing back.
"""

from collections.abc import Callable

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import BrokerId
from ottla.broker.cluster.peers import Peers
from ottla.share.records import ShareKey
from ottla.wire.messages.share_group_describe import DescribedGroup, ShareGroupDescribeRequest

_TIMEOUT_MS = 5_000


class Holders:
    """Asks the coordinators of groups, here or at other brokers.

    `coordinator` finds the broker that coordinates a group, `described` describes a group that is
    coordinated here; it raises OttlaError.
    """

    def __init__(
        self,
        broker_id: BrokerId,
        peers: Peers,
        coordinator: Callable[[str], BrokerId | None],
        described: Callable[[str], DescribedGroup],
    ) -> None:
        self._broker_id = broker_id
        self._peers = peers
        self._coordinator = coordinator
        self._described = described

    async def epoch_of(self, key: ShareKey) -> int | None:
        """The group's epoch where a member has the partition, else None. Raises OttlaError."""
        group = await self._ask(key.group_id)
        return group.group_epoch if _is_held(group, key) else None

    async def _ask(self, group_id: str) -> DescribedGroup:
        leader = self._coordinator(group_id)
        if leader is None:
            raise OttlaError(
                ErrorCode.COORDINATOR_NOT_AVAILABLE, f"the group {group_id} has no coordinator"
            )
        if leader == self._broker_id:
            return self._described(group_id)
        request = ShareGroupDescribeRequest(group_ids=[group_id])
        answer = await self._peers.request(leader, request, timeout_ms=_TIMEOUT_MS)
        group: DescribedGroup = answer.groups[0]
        if group.error_code not in (ErrorCode.NONE, ErrorCode.GROUP_ID_NOT_FOUND):
            code = ErrorCode(group.error_code)
            raise OttlaError(code, f"the coordinator of group {group_id} answers {code.name}")
        return group


def _is_held(group: DescribedGroup, key: ShareKey) -> bool:
    return any(
        topic.topic_id == key.topic_id and key.partition in topic.partitions
        for member in group.members
        for topic in member.assignment.topic_partitions
    )
