"""Functions that all administrative calls share: choosing a broker, and retrying."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from typing import TypeVar

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import TopicPartition
from ottla.client.common.errors import (
    ConnectionFailed,
    RequestTimedOut,
    UnsupportedByBroker,
    refused,
)
from ottla.client.connection.cluster import Cluster
from ottla.client.connection.coordinator import MOVED, Coordinator
from ottla.client.connection.view import NO_LEADER
from ottla.wire.notation import Message

Result = TypeVar("Result")
Response = TypeVar("Response")

# Temporary errors, which a retry may solve. Errors that need a change by the user are not listed.
_PASSING = MOVED | {
    ErrorCode.NOT_CONTROLLER,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.LEADER_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.UNSTABLE_OFFSET_COMMIT,
}


class Calls:
    """Sends the requests of an `Admin`'s parts: chooses the broker, and retries."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self._coordinators: dict[str, Coordinator] = {}

    async def retried(self, call: Callable[[], Awaitable[Result]]) -> Result:
        """Repeat `call` until it succeeds, or fails with an error that is not temporary."""
        deadline_s = self.cluster.deadline_s()
        attempt = 0
        while True:
            try:
                return await call()
            except OttlaError as error:
                passing = error.code in _PASSING or isinstance(
                    error, ConnectionFailed | RequestTimedOut
                )
                if not passing or self.cluster.now_s() >= deadline_s:
                    raise
            for coordinator in self._coordinators.values():
                coordinator.moved()
            await self.cluster.pause(attempt)
            attempt += 1
            try:
                await self.cluster.refresh()
            except (ConnectionFailed, RequestTimedOut):
                # If the failure persists, the next attempt raises it.
                continue

    async def ask_controller(
        self,
        request: Message,
        response_type: type[Response],
        read: Callable[[Response], Result],
    ) -> Result:
        """Send the controller a request, and return `read(answer)`.

        Retries as `retried` does, also after errors that `read` raises.
        """

        async def ask() -> Result:
            broker_id = await self.cluster.controller()
            return read(await self.cluster.ask(broker_id, request, response_type))

        return await self.retried(ask)

    async def ask_coordinator(
        self,
        group_id: str,
        request: Message,
        response_type: type[Response],
        read: Callable[[Response], Result],
    ) -> Result:
        """Send the coordinator of a group a request; otherwise as `ask_controller`."""
        coordinator = self.coordinator_of(group_id)

        async def ask() -> Result:
            return read(await coordinator.ask(request, response_type))

        return await self.retried(ask)

    async def ask_ottla(
        self, broker_id: int, request: Message, response_type: type[Response], lacks: str
    ) -> Response:
        """Send a broker a request that only Ottla serves. Does not retry.

        Raises ConnectionFailed, RequestTimedOut; and UnsupportedByBroker, whose message says in the
        words of `lacks` what other brokers cannot do.
        """
        try:
            return await self.cluster.ask(broker_id, request, response_type)
        except UnsupportedByBroker:
            raise UnsupportedByBroker(
                f"broker {broker_id} {lacks}: it is no Ottla, or an older one"
            ) from None

    async def ask_leader_ottla(
        self,
        partition: TopicPartition,
        request: Message,
        response_type: type[Response],
        read: Callable[[Response], Result],
        lacks: str,
    ) -> Result:
        """Send the leader of a partition a request that only Ottla serves; return `read(answer)`.

        Retries as `retried` does, also after errors that `read` raises. Raises UnknownTopic,
        BrokerRefused (LEADER_NOT_AVAILABLE), and the errors of `ask_ottla`.
        """

        async def ask() -> Result:
            leader = (await self.cluster.partition(partition)).leader
            if leader == NO_LEADER:
                raise refused(ErrorCode.LEADER_NOT_AVAILABLE, f"ask the leader of {partition}")
            return read(await self.ask_ottla(leader, request, response_type, lacks))

        return await self.retried(ask)

    async def ask_each_ottla(
        self,
        request: Message,
        response_type: type[Response],
        lacks: str,
        silent: dict[int, OttlaError],
    ) -> AsyncIterator[tuple[int, Response]]:
        """Call `ask_ottla` for every live broker; yield (broker id, answer).

        Adds brokers that do not answer to `silent`, with the error.
        """
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
        """Call `ask(broker_id)` for all brokers at once.

        Return the answers that come within `patience_s`. Brokers that cannot be reached, do not
        answer in time or do not know the request are left out.
        """

        async def in_time(broker_id: int) -> list[Result]:
            try:
                async with asyncio.timeout(patience_s):
                    return [await ask(broker_id)]
            except (UnsupportedByBroker, ConnectionFailed, RequestTimedOut, TimeoutError):
                return []

        answers = await asyncio.gather(*map(in_time, broker_ids))
        return [answer for answered in answers for answer in answered]

    def coordinator_of(self, group_id: str) -> Coordinator:
        """Return the coordinator of a group, remembered between calls."""
        return self._coordinators.setdefault(group_id, Coordinator(self.cluster, group_id))

    async def brokers(self) -> list[int]:
        """Return the ids of the live brokers."""
        await self.cluster.refresh()
        return sorted(self.cluster.view.brokers)

    async def by_leader(
        self, partitions: Iterable[TopicPartition]
    ) -> dict[int, list[TopicPartition]]:
        """Group partitions by their leaders. Raises UnknownTopic, UNKNOWN_TOPIC_OR_PARTITION."""
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
