"""Consumer groups and share groups (KIP-932): their members, state and offsets."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from ottla.base.errors import ErrorCode
from ottla.base.ids import TopicPartition
from ottla.client.admin.calls import Calls
from ottla.client.assignors.subscriptions import PROTOCOL_TYPE, decode_assignment
from ottla.client.common.arguments import Names, Partitions, checks_calls, name_list, partition_list
from ottla.client.common.errors import check
from ottla.client.connection.coordinator import OffsetAndMetadata
from ottla.wire.api import ApiKey
from ottla.wire.messages.classic_membership import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
)
from ottla.wire.messages.consumer_groups import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedConsumerGroup,
    DescribedShareGroup,
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
)
from ottla.wire.messages.group_offsets import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
)
from ottla.wire.messages.groups import (
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    DescribedGroup,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    ListGroupsRequest,
    ListGroupsResponse,
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

_DEAD = "Dead"


@dataclass(frozen=True, slots=True)
class GroupListing:
    """A group as its coordinator lists it."""

    group_id: str
    protocol_type: str
    state: str
    kind: str


@dataclass(frozen=True, slots=True)
class GroupMember:
    """A member of a group and the partitions assigned to it."""

    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class GroupDescription:
    """A group's state (Stable, Empty, PreparingRebalance, CompletingRebalance, Dead)."""

    group_id: str
    state: str
    protocol_type: str
    assignor: str
    coordinator_id: int
    members: tuple[GroupMember, ...]


@checks_calls()
class Groups:
    """`admin.groups`: consumer groups, their members and offsets."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    async def all(self, states: Names = (), kinds: Names = ()) -> list[GroupListing]:
        """Return all groups by name; optionally only of certain `states` and `kinds`."""
        wanted_states, wanted_kinds = name_list(states), name_list(kinds)

        async def ask() -> list[GroupListing]:
            found: dict[str, GroupListing] = {}
            for broker_id in await self._calls.brokers():
                version = (await self._calls.cluster.connection(broker_id)).version(
                    ApiKey.LIST_GROUPS
                )
                request = ListGroupsRequest(
                    states_filter=wanted_states if version >= 4 else [],
                    types_filter=wanted_kinds if version >= 5 else [],
                )
                answer = await self._calls.cluster.ask(broker_id, request, ListGroupsResponse)
                check(answer.error_code, "list groups")
                for group in answer.groups:
                    found[group.group_id] = GroupListing(
                        group.group_id, group.protocol_type, group.group_state, group.group_type
                    )
            return [found[group_id] for group_id in sorted(found)]

        return await self._calls.retried(ask)

    async def describe(self, group_id: str) -> GroupDescription:
        """Return state and members. A missing group has the state Dead."""
        return (await self.describe_all([group_id]))[0]

    async def describe_all(self, group_ids: Names) -> list[GroupDescription]:
        """Describe several groups; the results are in the same order."""
        return [
            await self._calls.retried(partial(self._described_group, group_id))
            for group_id in name_list(group_ids)
        ]

    async def _described_group(self, group_id: str) -> GroupDescription:
        broker_id = await self._calls.cluster.coordinator(group_id)
        request = DescribeGroupsRequest(groups=[group_id])
        answer = await self._calls.cluster.ask(broker_id, request, DescribeGroupsResponse)
        group = answer.groups[0]
        if group.error_code == ErrorCode.GROUP_ID_NOT_FOUND or group.group_state == _DEAD:
            found = await self._described_consumer_group(broker_id, group_id)
            if found is not None:
                return found
            return GroupDescription(group_id, _DEAD, "", "", broker_id, ())
        check(group.error_code, f"describe group {group_id!r}", group.error_message)
        return GroupDescription(
            group.group_id,
            group.group_state,
            group.protocol_type,
            group.protocol_data,
            broker_id,
            _members(group),
        )

    async def _described_consumer_group(
        self, broker_id: int, group_id: str
    ) -> GroupDescription | None:
        """Describe a group of the consumer protocol (KIP-848); None if there is no such group."""
        connection = await self._calls.cluster.connection(broker_id)
        if ApiKey.CONSUMER_GROUP_DESCRIBE not in connection.versions:
            return None
        request = ConsumerGroupDescribeRequest(group_ids=[group_id])
        answer = await self._calls.cluster.ask(broker_id, request, ConsumerGroupDescribeResponse)
        group = answer.groups[0]
        if group.error_code == ErrorCode.GROUP_ID_NOT_FOUND:
            return None
        check(group.error_code, f"describe group {group_id!r}", group.error_message)
        return GroupDescription(
            group.group_id,
            group.group_state,
            PROTOCOL_TYPE,
            group.assignor_name,
            broker_id,
            _described_members(group),
        )

    async def delete(self, group_ids: Names) -> None:
        """Delete groups with their offsets. Raises NON_EMPTY_GROUP if a group has members."""

        def read(answer: DeleteGroupsResponse) -> None:
            for result in answer.results:
                check(result.error_code, f"delete group {result.group_id!r}")

        for group_id in name_list(group_ids):
            request = DeleteGroupsRequest(groups_names=[group_id])
            await self._calls.ask_coordinator(group_id, request, DeleteGroupsResponse, read)

    async def remove_members(self, group_id: str, member_ids: Names) -> None:
        """Remove members from a group at once, as if their sessions had expired (KIP-345).

        A removed consumer that still runs rejoins at its next poll.
        """
        request = LeaveGroupRequest(
            group_id=group_id,
            members=[
                MemberIdentity(member_id=member_id, reason="removed by an administrator")
                for member_id in name_list(member_ids)
            ],
        )

        def read(answer: LeaveGroupResponse) -> None:
            check(answer.error_code, f"remove members of group {group_id!r}")
            for member in answer.members:
                check(member.error_code, f"remove member {member.member_id!r}")

        await self._calls.ask_coordinator(group_id, request, LeaveGroupResponse, read)

    async def offsets(
        self, group_id: str, partitions: Partitions | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return the group's committed offsets of `partitions` (None: of all partitions)."""
        return await self._calls.coordinator_of(group_id).committed(
            None if partitions is None else partition_list(partitions)
        )

    async def set_offsets(self, group_id: str, offsets: Mapping[TopicPartition, int]) -> None:
        """Set the offsets of a group without members.

        Raises UNKNOWN_MEMBER_ID if it has members.
        """
        await self._calls.coordinator_of(group_id).commit(
            {partition: OffsetAndMetadata(offset) for partition, offset in offsets.items()}
        )

    async def delete_offsets(self, group_id: str, partitions: Partitions) -> None:
        """Delete committed offsets of topics that no member subscribes to (KIP-496)."""
        topics: dict[str, OffsetDeleteRequestTopic] = {}
        for topic, index in partition_list(partitions):
            entry = topics.setdefault(topic, OffsetDeleteRequestTopic(name=topic))
            entry.partitions.append(OffsetDeleteRequestPartition(partition_index=index))
        request = OffsetDeleteRequest(group_id=group_id, topics=list(topics.values()))

        def read(answer: OffsetDeleteResponse) -> None:
            check(answer.error_code, f"delete offsets of group {group_id!r}")
            for topic in answer.topics:
                for entry in topic.partitions:
                    what = f"delete the offset of {topic.name}-{entry.partition_index}"
                    check(entry.error_code, what)

        await self._calls.ask_coordinator(group_id, request, OffsetDeleteResponse, read)

    # Defined last, because its name hides the type `list`.
    async def list(self, states: Names = (), kinds: Names = ()) -> list[str]:
        """Return the names of all groups, optionally only of certain `states` and `kinds`."""
        return [group.group_id for group in await self.all(states, kinds)]


def _members(group: DescribedGroup) -> tuple[GroupMember, ...]:
    known = group.protocol_type == PROTOCOL_TYPE
    return tuple(
        GroupMember(
            member.member_id,
            member.group_instance_id,
            member.client_id,
            member.client_host,
            tuple(sorted(decode_assignment(member.member_assignment))) if known else (),
        )
        for member in group.members
    )


def _described_members(
    group: DescribedConsumerGroup | DescribedShareGroup,
) -> tuple[GroupMember, ...]:
    return tuple(
        GroupMember(
            member.member_id,
            # Share groups have no static members.
            getattr(member, "instance_id", None),
            member.client_id,
            member.client_host,
            tuple(
                TopicPartition(topic.topic_name, partition)
                for topic in member.assignment.topic_partitions
                for partition in topic.partitions
            ),
        )
        for member in group.members
    )


SHARE = "share"


@dataclass(frozen=True, slots=True)
class SharePartitionOffset:
    """The share-partition start offset of a group, and its lag. None means unknown or not set."""

    start_offset: int | None
    lag: int | None


@checks_calls()
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
            return GroupDescription(
                group_id,
                group.group_state,
                SHARE,
                group.assignor_name,
                broker_id,
                _described_members(group),
            )

        return await self._calls.retried(ask)

    async def offsets(self, group_id: str) -> dict[TopicPartition, SharePartitionOffset]:
        """Return the start offset of the group in every partition that it has read."""
        wanted = DescribeShareGroupOffsetsRequestGroup(group_id=group_id, topics=None)
        request = DescribeShareGroupOffsetsRequest(groups=[wanted])

        def read(
            answer: DescribeShareGroupOffsetsResponse,
        ) -> dict[TopicPartition, SharePartitionOffset]:
            group = answer.groups[0]
            check(group.error_code, f"describe group {group_id!r}", group.error_message)
            return {
                TopicPartition(topic.topic_name, each.partition_index): SharePartitionOffset(
                    _known(each.start_offset), _known(each.lag)
                )
                for topic in group.topics
                for each in topic.partitions
                if each.error_code == 0
            }

        return await self._calls.ask_coordinator(
            group_id, request, DescribeShareGroupOffsetsResponse, read
        )

    async def set_offsets(self, group_id: str, offsets: Mapping[TopicPartition, int]) -> None:
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

        def read(answer: AlterShareGroupOffsetsResponse) -> None:
            check(answer.error_code, f"move share group {group_id!r}", answer.error_message)
            for topic in answer.responses:
                for each in topic.partitions:
                    what = f"move share group {group_id!r} in {topic.topic_name}"
                    check(each.error_code, f"{what}-{each.partition_index}", each.error_message)

        await self._calls.ask_coordinator(group_id, request, AlterShareGroupOffsetsResponse, read)

    async def delete_offsets(self, group_id: str, topics: Names) -> None:
        """Delete the state of a group without members for `topics`, as if it had never read them.

        Raises OttlaError: NON_EMPTY_GROUP, GROUP_ID_NOT_FOUND.
        """
        request = DeleteShareGroupOffsetsRequest(
            group_id=group_id,
            topics=[
                DeleteShareGroupOffsetsRequestTopic(topic_name=topic) for topic in name_list(topics)
            ],
        )

        def read(answer: DeleteShareGroupOffsetsResponse) -> None:
            check(answer.error_code, f"move share group {group_id!r}", answer.error_message)
            for topic in answer.responses:
                what = f"have share group {group_id!r} forget {topic.topic_name}"
                check(topic.error_code, what, topic.error_message)

        await self._calls.ask_coordinator(group_id, request, DeleteShareGroupOffsetsResponse, read)


def _known(number: int) -> int | None:
    return None if number < 0 else number
