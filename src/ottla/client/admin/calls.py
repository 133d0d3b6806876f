"""What all administrative calls share: which broker to ask, and when to ask again."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from typing import TypeVar

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import TopicPartition
from ottla.client.common.errors import (
    ConnectionFailed,
    RequestTimedOut,
    UnsupportedByBroker,
    check,
    refused,
)
from ottla.client.connection.cluster import Cluster
from ottla.client.connection.coordinator import MOVED, Coordinator
from ottla.client.connection.view import NO_LEADER
from ottla.wire.notation import Message

Result = TypeVar("Result")
Response = TypeVar("Response")

# Errors that pass by themselves, so that asking again helps. Those a user must mend are not here.
_PASSING = MOVED | {
    ErrorCode.NOT_CONTROLLER,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.LEADER_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.UNSTABLE_OFFSET_COMMIT,
}


class Calls:
    """How the parts of an `Admin` send requests: to which broker, and how often again."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self._coordinators: dict[str, Coordinator] = {}

    async def retried(self, call: Callable[[], Awaitable[Result]]) -> Result:
        """`call` until it succeeds, or fails for a reason that does not pass by itself."""
        loop = asyncio.get_running_loop()
        deadline_s = loop.time() + self.cluster.options.retry_timeout_ms / 1000
        attempt = 0
        while True:
            try:
                return await call()
            except OttlaError as error:
                passing = error.code in _PASSING or isinstance(
                    error, ConnectionFailed | RequestTimedOut
                )
                if not passing or loop.time() >= deadline_s:
                    raise
            for coordinator in self._coordinators.values():
                coordinator.moved()
            await self.cluster.pause(attempt)
            attempt += 1
            try:
                await self.cluster.refresh()
            except (ConnectionFailed, RequestTimedOut):
                # If the failure lasts, the next attempt raises it.
                continue

    async def ask_ottla(
        self, broker_id: int, request: Message, response_type: type[Response], lacks: str
    ) -> Response:
        """Ask a broker, once, what only Ottla answers; `lacks` is part of the error for others.

        Raises ConnectionFailed, RequestTimedOut, UnsupportedByBroker.
        """
        try:
            return await self.cluster.ask(broker_id, request, response_type)
        except UnsupportedByBroker:
            raise UnsupportedByBroker(
                f"broker {broker_id} {lacks}: it is no Ottla, or an older one"
            ) from None

    async def ask_each_ottla(
        self,
        request: Message,
        response_type: type[Response],
        lacks: str,
        silent: dict[int, OttlaError],
    ) -> AsyncIterator[tuple[int, Response]]:
        """`ask_ottla` of every live broker, by id; `silent` gets those that do not answer."""
        for broker_id in await self.retried(self.brokers):
            try:
                answer = await self.ask_ottla(broker_id, request, response_type, lacks)
            except (ConnectionFailed, RequestTimedOut) as error:
                silent[broker_id] = error
                continue
            yield broker_id, answer

    async def each_in_time(
        self, broker_ids: Iterable[int], ask: Callable[[int], Awaitable[Result]], patience_s: float
    ) -> list[Result]:
        """`ask(broker_id)` of all brokers at once; the answers that come within `patience_s`.

        Brokers that cannot be reached, do not answer in time or do not know the request are left
        out.
        """

        async def in_time(broker_id: int) -> list[Result]:
            try:
                async with asyncio.timeout(patience_s):
                    return [await ask(broker_id)]
            except (UnsupportedByBroker, ConnectionFailed, RequestTimedOut, TimeoutError):
                return []

        answers = await asyncio.gather(*map(in_time, broker_ids))
        return [answer for answered in answers for answer in answered]

    async def leader_of(self, partition: TopicPartition, what: str) -> int:
        """Id of the leader; `what` says in an error what it was needed for.

        Raises UnknownTopic, BrokerRefused (LEADER_NOT_AVAILABLE).
        """
        leader = (await self.cluster.partition(partition)).leader
        if leader == NO_LEADER:
            check(ErrorCode.LEADER_NOT_AVAILABLE, what)
        return leader

    def coordinator_of(self, group_id: str) -> Coordinator:
        """The coordinator of a group, remembered between calls."""
        return self._coordinators.setdefault(group_id, Coordinator(self.cluster, group_id))

    async def brokers(self) -> list[int]:
        """Ids of the live brokers."""
        await self.cluster.refresh()
        return sorted(self.cluster.view.brokers)

    async def by_leader(
        self, partitions: Iterable[TopicPartition]
    ) -> dict[int, list[TopicPartition]]:
        """Partitions by their leaders. Raises UnknownTopic, UNKNOWN_TOPIC_OR_PARTITION."""
        by_leader: dict[int, list[TopicPartition]] = {}
        for partition in partitions:
            await self.cluster.topic(partition.topic)
            leader = self.cluster.view.leader(*partition)
            if leader == NO_LEADER:
                raise refused(
                    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                    f"work on {partition}: it has no leader, or does not exist",
                )
            by_leader.setdefault(leader, []).append(partition)
        return by_leader
