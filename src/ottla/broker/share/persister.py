"""Sends operations to share coordinators, on this broker or another, with retries.

A request is retried while its coordinator moves, loads or cannot be reached. A request that timed
out may have taken effect; it is retried, too, because all operations are idempotent.
"""

import asyncio
import contextlib
from collections.abc import Iterable, Mapping
from typing import Any

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import BrokerId, TopicPartition
from ottla.broker.cluster.links import Links
from ottla.broker.cluster.peers import Peers
from ottla.broker.groups import Groups
from ottla.broker.partitions.partitions import Partitions
from ottla.broker.runtime.runtime import Runtime
from ottla.broker.runtime.view import ClusterView
from ottla.broker.share.messages import SUMMARY, StateOperation
from ottla.broker.share.states import ShareStates, key_text
from ottla.broker.topics.internal_topics import SHARE_GROUP_STATE
from ottla.broker.topics.topics import Topics
from ottla.share.coordinator import KeyAnswer
from ottla.share.records import UNKNOWN, ShareKey
from ottla.wire.messages.consumer_groups import DescribedShareGroup, ShareGroupDescribeRequest
from ottla.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)

_AGAIN = frozenset(
    {
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.BROKER_NOT_AVAILABLE,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.NOT_ENOUGH_REPLICAS,
    }
)
_BACKOFF_S = (0.02, 0.05, 0.1, 0.2)
_REQUEST_TIMEOUT_MS = 10_000


class Persister:
    """Carries out operations on share state, as the Persister of KIP-932."""

    def __init__(
        self,
        view: ClusterView,
        runtime: Runtime,
        topics: Topics,
        states: ShareStates,
        links: Links,
    ) -> None:
        self._view = view
        self._clock = runtime.clock
        self._topics = topics
        self._states = states
        self._links = links

    def close(self) -> None:
        """Close the connections to other brokers: this broker is stopping."""
        self._links.close()

    async def ask(
        self, operation: StateOperation, arguments: Mapping[ShareKey, Any], *, patience_ms: int
    ) -> dict[ShareKey, KeyAnswer]:
        """Carry out an operation on every key.

        Retriable errors are retried for `patience_ms`; after that the answer is the last error.
        """
        clock = self._clock
        until_ms = clock.monotonic_ms() + patience_ms
        answers: dict[ShareKey, KeyAnswer] = {}
        left = dict(arguments)
        tries = 0
        while left:
            for group_id, leader, part in await self._by_leader(left):
                answers |= await self._once(operation, group_id, leader, part)
            left = {key: arguments[key] for key in left if answers[key].code in _AGAIN}
            if not left or clock.monotonic_ms() >= until_ms:
                break
            await asyncio.sleep(_BACKOFF_S[min(tries, len(_BACKOFF_S) - 1)])
            tries += 1
        return answers

    async def ask_one(
        self, operation: StateOperation, key: ShareKey, argument: Any, *, patience_ms: int
    ) -> KeyAnswer:
        """Carry out an operation on a single key; see `ask`."""
        return (await self.ask(operation, {key: argument}, patience_ms=patience_ms))[key]

    async def start_offset(self, group_id: str, partition: TopicPartition) -> int:
        """Return a share group's start offset in a partition; UNKNOWN if it cannot be found."""
        topic = self._view.image.topic(partition.topic)
        if topic is None or self._view.image.topic(SHARE_GROUP_STATE) is None:
            return UNKNOWN
        key = ShareKey(group_id, topic.id, partition.partition)
        answered = await self.ask_one(SUMMARY, key, UNKNOWN, patience_ms=_REQUEST_TIMEOUT_MS)
        return UNKNOWN if answered.state is None else answered.state.start_offset

    async def _by_leader(
        self, arguments: Mapping[ShareKey, Any]
    ) -> list[tuple[str, BrokerId | None, dict[ShareKey, Any]]]:
        if self._view.image.topic(SHARE_GROUP_STATE) is None:
            # Without the topic there is no coordinator; `ask` retries that error.
            with contextlib.suppress(OttlaError):
                await self._topics.auto_create(SHARE_GROUP_STATE)
        parts: dict[tuple[str, BrokerId | None], dict[ShareKey, Any]] = {}
        for key, argument in arguments.items():
            parts.setdefault((key.group_id, self._states.coordinator_of(key_text(key))), {})[
                key
            ] = argument
        return [(group_id, leader, part) for (group_id, leader), part in parts.items()]

    async def _once(
        self,
        operation: StateOperation,
        group_id: str,
        leader: BrokerId | None,
        arguments: Mapping[ShareKey, Any],
    ) -> dict[ShareKey, KeyAnswer]:
        if leader is None:
            return dict.fromkeys(arguments, KeyAnswer(ErrorCode.COORDINATOR_NOT_AVAILABLE))
        if leader == self._view.broker_id:
            return await self.carry_out(operation, arguments)
        try:
            body = await self._links.request(
                leader, operation.request_for(group_id, arguments), timeout_ms=_REQUEST_TIMEOUT_MS
            )
        except OttlaError as error:
            return dict.fromkeys(arguments, KeyAnswer(error.code, message=error.message))
        answers = operation.of_response(group_id, body)
        missing = KeyAnswer(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        return {key: answers.get(key, missing) for key in arguments}

    async def carry_out(
        self, operation: StateOperation, arguments: Mapping[ShareKey, Any]
    ) -> dict[ShareKey, KeyAnswer]:
        """Carry out an operation with the coordinators of this broker, without retries."""
        loop = asyncio.get_running_loop()
        waiting: list[asyncio.Future[KeyAnswer]] = []
        for key, argument in arguments.items():
            future: asyncio.Future[KeyAnswer] = loop.create_future()
            waiting.append(future)
            self._states.run(key, operation.command(key, argument), _setter(future))
        return dict(zip(arguments, await asyncio.gather(*waiting), strict=True))


def _setter(future: "asyncio.Future[KeyAnswer]") -> Any:
    def answer(answered: KeyAnswer) -> None:
        if not future.done():
            future.set_result(answered)

    return answer


_DESCRIBE_TIMEOUT_MS = 5_000


class AssignmentLookup:
    """Looks up assignments of share groups at their coordinators, on this broker or another."""

    def __init__(self, broker_id: BrokerId, groups: Groups, peers: Peers) -> None:
        self._broker_id = broker_id
        self._groups = groups
        self._peers = peers

    async def epoch_of(self, key: ShareKey) -> int | None:
        """Return the group epoch if a member has the partition, else None. Raises OttlaError."""
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
        answer = await self._peers.request(leader, request, timeout_ms=_DESCRIBE_TIMEOUT_MS)
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


_LATEST = -1
_CONSUMER = -1
_END_OFFSETS_TIMEOUT_MS = 5_000


class EndOffsets:
    """Finds high watermarks on this broker, or with ListOffsets at the leaders."""

    def __init__(self, view: ClusterView, partitions: Partitions, peers: Peers) -> None:
        self._view = view
        self._partitions = partitions
        self._peers = peers

    async def find(self, wanted: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Return high watermarks, without the partitions whose leader does not answer."""
        found: dict[TopicPartition, int] = {}
        elsewhere: dict[BrokerId, list[TopicPartition]] = {}
        image = self._view.image
        for each in wanted:
            state = image.partition(each.topic, each.partition)
            if state is None:
                continue
            if state.leader == self._view.broker_id:
                local = self._partitions.find(each.topic, each.partition)
                if local is not None and local.leader is not None:
                    found[each] = local.high_watermark
            elif state.leader in image.brokers:
                elsewhere.setdefault(state.leader, []).append(each)
        requests = [self._request(leader, led) for leader, led in elsewhere.items()]
        for answered in await asyncio.gather(*requests):
            found |= answered
        return found

    async def _request(
        self, leader: BrokerId, wanted: list[TopicPartition]
    ) -> dict[TopicPartition, int]:
        topics: dict[str, list[ListOffsetsPartition]] = {}
        for topic, index in wanted:
            topics.setdefault(topic, []).append(
                ListOffsetsPartition(
                    partition_index=index, current_leader_epoch=-1, timestamp=_LATEST
                )
            )
        request = ListOffsetsRequest(
            replica_id=_CONSUMER,
            topics=[
                ListOffsetsTopic(name=name, partitions=parts) for name, parts in topics.items()
            ],
        )
        try:
            answer = await self._peers.request(leader, request, timeout_ms=_END_OFFSETS_TIMEOUT_MS)
        except OttlaError:
            return {}
        return {
            TopicPartition(topic.name, part.partition_index): part.offset
            for topic in answer.topics
            for part in topic.partitions
            if part.error_code == ErrorCode.NONE
        }
