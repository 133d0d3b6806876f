"""Share groups: their members and start offsets (KIP-932)."""

from collections.abc import Mapping
from dataclasses import dataclass

from ottla.base.ids import TopicPartition
from ottla.client.admin.calls import Calls
from ottla.client.admin.groups import GroupDescription, GroupMember
from ottla.client.common.arguments import Names, name_list
from ottla.client.common.call_check import checks_calls
from ottla.client.common.errors import check
from ottla.wire.messages.consumer_groups import (
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
)
from ottla.wire.messages.share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
    AlterShareGroupOffsetsResponse,
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequestTopic,
    DeleteShareGroupOffsetsResponse,
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsResponse,
)

SHARE = "share"


@dataclass(frozen=True, slots=True)
class SharePosition:
    """The start offset of a group in a partition; None if it has none, or it is unknown."""

    start_offset: int | None
    lag: int | None


@checks_calls
class ShareGroups:
    """`admin.share_groups`: share groups and their start offsets."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    async def describe(self, group_id: str) -> GroupDescription:
        """Return state and members, each with its partitions; members may share a partition."""

        async def ask() -> GroupDescription:
            broker_id = await self._calls.cluster.coordinator(group_id)
            request = ShareGroupDescribeRequest(group_ids=[group_id])
            answer = await self._calls.cluster.ask(broker_id, request, ShareGroupDescribeResponse)
            group = answer.groups[0]
            check(group.error_code, f"describe group {group_id!r}", group.error_message)
            members = tuple(
                GroupMember(
                    each.member_id,
                    None,
                    each.client_id,
                    each.client_host,
                    tuple(
                        TopicPartition(topic.topic_name, index)
                        for topic in each.assignment.topic_partitions
                        for index in topic.partitions
                    ),
                )
                for each in group.members
            )
            return GroupDescription(
                group_id, group.group_state, SHARE, group.assignor_name, broker_id, members
            )

        return await self._calls.retried(ask)

    async def positions(self, group_id: str) -> dict[TopicPartition, SharePosition]:
        """Return the start offset of the group in every partition that it has read."""

        async def ask() -> dict[TopicPartition, SharePosition]:
            broker_id = await self._calls.cluster.coordinator(group_id)
            wanted = DescribeShareGroupOffsetsRequestGroup(group_id=group_id, topics=None)
            request = DescribeShareGroupOffsetsRequest(groups=[wanted])
            answer = await self._calls.cluster.ask(
                broker_id, request, DescribeShareGroupOffsetsResponse
            )
            group = answer.groups[0]
            check(group.error_code, f"describe group {group_id!r}", group.error_message)
            return {
                TopicPartition(topic.topic_name, each.partition_index): SharePosition(
                    _known(each.start_offset), _known(each.lag)
                )
                for topic in group.topics
                for each in topic.partitions
                if each.error_code == 0
            }

        return await self._calls.retried(ask)

    async def alter_positions(self, group_id: str, offsets: Mapping[TopicPartition, int]) -> None:
        """Set the start offsets of a group without members; the state of later records is dropped.

        Raises OttlaError: NON_EMPTY_GROUP, GROUP_ID_NOT_FOUND for a group of another kind.
        """
        topics: dict[str, AlterShareGroupOffsetsRequestTopic] = {}
        for (topic, index), offset in offsets.items():
            entry = topics.setdefault(topic, AlterShareGroupOffsetsRequestTopic(topic_name=topic))
            entry.partitions.append(
                AlterShareGroupOffsetsRequestPartition(partition_index=index, start_offset=offset)
            )
        request = AlterShareGroupOffsetsRequest(group_id=group_id, topics=list(topics.values()))

        async def alter() -> None:
            broker_id = await self._calls.cluster.coordinator(group_id)
            answer = await self._calls.cluster.ask(
                broker_id, request, AlterShareGroupOffsetsResponse
            )
            check(answer.error_code, f"move share group {group_id!r}", answer.error_message)
            for topic in answer.responses:
                for each in topic.partitions:
                    what = f"move share group {group_id!r} in {topic.topic_name}"
                    check(each.error_code, f"{what}-{each.partition_index}", each.error_message)

        await self._calls.retried(alter)

    async def delete_positions(self, group_id: str, topics: Names) -> None:
        """Delete a group's state of topics, as if it had never read them; it must have no members.

        Raises OttlaError: NON_EMPTY_GROUP, GROUP_ID_NOT_FOUND.
        """
        request = DeleteShareGroupOffsetsRequest(
            group_id=group_id,
            topics=[
                DeleteShareGroupOffsetsRequestTopic(topic_name=topic) for topic in name_list(topics)
            ],
        )

        async def delete() -> None:
            broker_id = await self._calls.cluster.coordinator(group_id)
            answer = await self._calls.cluster.ask(
                broker_id, request, DeleteShareGroupOffsetsResponse
            )
            check(answer.error_code, f"move share group {group_id!r}", answer.error_message)
            for topic in answer.responses:
                what = f"have share group {group_id!r} forget {topic.topic_name}"
                check(topic.error_code, what, topic.error_message)

        await self._calls.retried(delete)


def _known(number: int) -> int | None:
    return None if number < 0 else number
