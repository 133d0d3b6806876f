"""Finds a coordinator, sends it requests, and finds it again after it moved. Ignores membership."""

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, TypeVar

from ottla.base.errors import ErrorCode
from ottla.base.ids import TopicPartition, by_topic
from ottla.client.common.errors import (
    BrokerRefused,
    CommitFailed,
    ConnectionFailed,
    Needs,
    RequestTimedOut,
    check,
    code_of,
    refused,
    remedy_for,
)
from ottla.client.connection.cluster import GROUP, TRANSACTIONAL_ID, Cluster
from ottla.client.connection.connection import Connection
from ottla.wire.api import ApiKey
from ottla.wire.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchResponse,
    TxnOffsetCommitRequestTopic,
)
from ottla.wire.notation import Message


class GroupMetadata(NamedTuple):
    """A group and one of its members. With only the group's id, brokers do not check the member."""

    group_id: str
    generation: int = -1
    member_id: str = ""
    instance_id: str | None = None


class OffsetAndMetadata(NamedTuple):
    """A committed offset, which is the next offset to read, with the committer's metadata."""

    offset: int
    metadata: str = ""
    leader_epoch: int = -1


Response = TypeVar("Response")
OffsetTopic = TypeVar("OffsetTopic", OffsetCommitRequestTopic, TxnOffsetCommitRequestTopic)

_logger = logging.getLogger(__name__)

_PURPOSES = {GROUP: "group", TRANSACTIONAL_ID: "transaction"}
MOVED = frozenset({ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE})
# The member is no longer part of the generation that its request names.
LOST = frozenset(
    {ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION, ErrorCode.FENCED_INSTANCE_ID}
)


class Coordinator:
    """Sends requests about one group or, depending on `kind`, one transactional id."""

    def __init__(self, cluster: Cluster, group_id: str, kind: int = GROUP) -> None:
        self.cluster = cluster
        self.group_id = group_id
        self._kind = kind
        self._broker_id: int | None = None
        # The connection on which a JoinGroup or SyncGroup is waiting for its answer.
        self._rebalancing: Connection | None = None

    def moved(self) -> None:
        """Look up the coordinator again before the next request."""
        self._broker_id = None

    async def ask(
        self,
        message: Message,
        response_type: type[Response],
        timeout_s: float | None = None,
        at_most: int | None = None,
        *,
        rebalances: bool = False,
    ) -> Response:
        """Ask the coordinator once, in a version up to `at_most` if given.

        After a broken connection the coordinator is looked up again. `rebalances` marks a JoinGroup
        or SyncGroup, which the coordinator answers only once all members have sent theirs. A broker
        answers in order, so other requests meanwhile use a second connection and need not wait. If
        one of them times out, the coordinator hangs, and the rebalance fails, too.
        """
        beside = self._rebalancing is not None and not rebalances
        try:
            connection = await self._connection(beside=beside)
            if rebalances:
                self._rebalancing = connection
            return await connection.request(
                message,
                response_type,
                timeout_s or self.cluster.options.request_timeout_ms / 1000,
                at_most,
            )
        except (ConnectionFailed, RequestTimedOut) as error:
            self.moved()
            if beside and self._rebalancing is not None and isinstance(error, RequestTimedOut):
                self._rebalancing.close(error)
            raise
        finally:
            if rebalances:
                self._rebalancing = None

    async def connection(self) -> Connection:
        """Return the connection to the coordinator, found and opened if needed.

        After a failure it is looked up again: another broker may have taken over.
        """
        try:
            return await self._connection(beside=False)
        except (ConnectionFailed, RequestTimedOut):
            self.moved()
            raise

    async def _connection(self, *, beside: bool) -> Connection:
        if self._broker_id is None:
            self._broker_id = await self.cluster.coordinator(self.group_id, self._kind)
        purpose = _PURPOSES[self._kind] + (" beside a rebalance" if beside else "")
        return await self.cluster.connection(self._broker_id, purpose)

    async def version(self, key: int) -> int:
        """Return the version of an API that the coordinator supports."""
        return (await self.connection()).version(key)

    # -- offsets

    async def commit(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata],
        *,
        generation: int = -1,
        member_id: str = "",
        instance_id: str | None = None,
    ) -> None:
        """Commit offsets; retry while the coordinator moves or loads.

        Raises CommitFailed if the group has rebalanced, BrokerRefused otherwise.
        """
        request = OffsetCommitRequest(
            group_id=self.group_id,
            generation_id_or_member_epoch=generation,
            member_id=member_id,
            group_instance_id=instance_id,
            topics=offset_topics(offsets, OffsetCommitRequestTopic, OffsetCommitRequestPartition),
        )
        deadline_s = self.cluster.deadline_s()
        attempt = 0
        while True:
            try:
                answer = await self.ask(request, OffsetCommitResponse)
            except (ConnectionFailed, RequestTimedOut):
                if self.cluster.now_s() >= deadline_s:
                    raise
            else:
                failed = {
                    code_of(partition.error_code): (topic.name, partition.partition_index)
                    for topic in answer.topics
                    for partition in topic.partitions
                    if partition.error_code
                }
                if not failed:
                    return
                self._raise_unless_passing(failed, deadline_s)
                if unknown := failed.get(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION):
                    # A coordinator learns about a new topic within moments; a missing topic is
                    # refused after the same time as in any other call.
                    await self._require_known(TopicPartition(*unknown), attempt)
            await self.cluster.pause(attempt)
            attempt += 1

    def _raise_unless_passing(
        self, failed: Mapping[ErrorCode, tuple[str, int]], deadline_s: float
    ) -> None:
        for code, (topic, partition) in failed.items():
            if code in LOST or code is ErrorCode.REBALANCE_IN_PROGRESS:
                raise CommitFailed(
                    code,
                    f"offsets of group {self.group_id!r} were not committed: the group has moved "
                    "on and its partitions are with other members, who will read the records "
                    "again; poll more often, or raise max_poll_interval_ms",
                )
            if not code.retriable or self.cluster.now_s() >= deadline_s:
                needed = [Needs("read", "topic", topic), Needs("read", "group", self.group_id)]
                raise refused(code, f"commit the offset of {topic}-{partition}", None, needed)
            if code in MOVED:
                self.moved()

    async def _require_known(self, partition: TopicPartition, attempt: int) -> None:
        """Raise UnknownTopic if the cluster lacks the partition."""
        if attempt == 0:
            _logger.warning(
                "the commit of %s for group %r waits: the coordinator knows no such partition",
                partition,
                self.group_id,
            )
        self.cluster.want([partition.topic])
        await self.cluster.refresh()
        await self.cluster.partition(partition)

    async def committed(
        self, partitions: Iterable[TopicPartition] | None
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return the committed offsets of `partitions` (None: of all partitions).

        Partitions without a committed offset are left out.
        """
        wanted = None if partitions is None else sorted(partitions)
        deadline_s = self.cluster.deadline_s()
        attempt = 0
        while True:
            try:
                version = await self.version(ApiKey.OFFSET_FETCH)
                answer = await self.ask(self._fetch_request(wanted, version), OffsetFetchResponse)
                return self._committed_in(answer)
            except (ConnectionFailed, RequestTimedOut):
                if self.cluster.now_s() >= deadline_s:
                    raise
            except BrokerRefused as error:
                if not error.code.retriable or self.cluster.now_s() >= deadline_s:
                    raise
                if error.code in MOVED:
                    self.moved()
            await self.cluster.pause(attempt)
            attempt += 1

    def _fetch_request(
        self, wanted: list[TopicPartition] | None, version: int
    ) -> OffsetFetchRequest:
        by_name = by_topic(wanted or ())
        if version < 8:
            old = [
                OffsetFetchRequestTopic(name=topic, partition_indexes=numbers)
                for topic, numbers in by_name.items()
            ]
            return OffsetFetchRequest(
                group_id=self.group_id, topics=None if wanted is None else old
            )
        topics = [
            OffsetFetchRequestTopic(name=topic, partition_indexes=numbers)
            for topic, numbers in by_name.items()
        ]
        group = OffsetFetchRequestGroup(
            group_id=self.group_id, topics=None if wanted is None else topics
        )
        return OffsetFetchRequest(groups=[group], require_stable=True)

    def _committed_in(self, answer: OffsetFetchResponse) -> dict[TopicPartition, OffsetAndMetadata]:
        # Both forms of the answer have the same fields inside the group.
        group: Any = answer.groups[0] if answer.groups else answer
        needed = [Needs("describe", "group", self.group_id)]
        check(group.error_code, f"fetch the offsets of group {self.group_id!r}", None, needed)
        found: dict[TopicPartition, OffsetAndMetadata] = {}
        for topic in group.topics:
            for entry in topic.partitions:
                partition = TopicPartition(topic.name, entry.partition_index)
                needed = [Needs("describe", "topic", topic.name)]
                check(entry.error_code, f"fetch the committed offset of {partition}", None, needed)
                if entry.committed_offset >= 0:
                    found[partition] = OffsetAndMetadata(
                        entry.committed_offset, entry.metadata or "", entry.committed_leader_epoch
                    )
        return found


def offset_topics(
    offsets: Mapping[TopicPartition, OffsetAndMetadata],
    topic_type: type[OffsetTopic],
    partition_type: Callable[..., Any],
) -> list[OffsetTopic]:
    """Return offsets in the form of a request, which has its own types."""
    topics: dict[str, OffsetTopic] = {}
    for partition, committed in offsets.items():
        topic = topics.setdefault(partition.topic, topic_type(name=partition.topic))
        topic.partitions.append(
            partition_type(
                partition_index=partition.partition,
                committed_offset=committed.offset,
                committed_leader_epoch=committed.leader_epoch,
                committed_metadata=committed.metadata,
            )
        )
    return list(topics.values())


def group_error(code: ErrorCode, group_id: str, doing: str) -> BrokerRefused:
    """Return the error for a permanent refusal of a member by its coordinator."""
    remedy = remedy_for(code, [Needs("read", "group", group_id)])
    return BrokerRefused(
        code,
        f"the coordinator of group {group_id!r} refused to {doing}"
        + (f"; {remedy}" if remedy else ""),
    )
