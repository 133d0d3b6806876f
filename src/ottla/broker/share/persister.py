"""Asks the coordinators of share state, here or at other brokers, until they answer or time is up.

A coordinator that moves, loads or cannot be reached is asked again. An outcome that is not known
may have been carried out: the commands can be repeated.
"""

import asyncio
import contextlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import BrokerId
from ottla.broker.share.messages import Operation
from ottla.broker.share.states import ShareStates, key_text
from ottla.broker.topics.internal_topics import SHARE_GROUP_STATE
from ottla.broker.transactions.links import Links, idle_ms
from ottla.share.coordinator import Answered
from ottla.share.records import ShareKey

if TYPE_CHECKING:
    from ottla.broker.process.broker import Broker

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
    """Everything this broker asks about share state."""

    def __init__(self, broker: "Broker", states: ShareStates) -> None:
        self._broker = broker
        self._states = states
        self._links = Links(broker.peers, idle_ms=idle_ms(broker.settings))

    def close(self) -> None:
        """The broker stops."""
        self._links.close()

    async def ask(
        self, operation: Operation, said: Mapping[ShareKey, Any], *, patience_ms: int
    ) -> dict[ShareKey, Answered]:
        """Carry an operation out on every key; the last error where it was in vain for so long."""
        clock = self._broker.clock
        until_ms = clock.monotonic_ms() + patience_ms
        answers: dict[ShareKey, Answered] = {}
        left = dict(said)
        tries = 0
        while left:
            for group_id, leader, part in await self._by_leader(left):
                answers |= await self._once(operation, group_id, leader, part)
            left = {key: said[key] for key in left if answers[key].code in _AGAIN}
            if not left or clock.monotonic_ms() >= until_ms:
                break
            await asyncio.sleep(_BACKOFF_S[min(tries, len(_BACKOFF_S) - 1)])
            tries += 1
        return answers

    async def ask_one(
        self, operation: Operation, key: ShareKey, what: Any, *, patience_ms: int
    ) -> Answered:
        """`ask` about a single key."""
        return (await self.ask(operation, {key: what}, patience_ms=patience_ms))[key]

    async def _by_leader(
        self, said: Mapping[ShareKey, Any]
    ) -> list[tuple[str, BrokerId | None, dict[ShareKey, Any]]]:
        if self._broker.image.topic(SHARE_GROUP_STATE) is None:
            # Where that fails there is no leader yet, then.
            with contextlib.suppress(OttlaError):
                await self._broker.topics.auto_create(SHARE_GROUP_STATE)
        parts: dict[tuple[str, BrokerId | None], dict[ShareKey, Any]] = {}
        for key, what in said.items():
            parts.setdefault((key.group_id, self._leader(key)), {})[key] = what
        return [(group_id, leader, part) for (group_id, leader), part in parts.items()]

    def _leader(self, key: ShareKey) -> BrokerId | None:
        index = self._states.partition_index(key_text(key))
        if index is None:
            return None
        state = self._broker.image.partition(SHARE_GROUP_STATE, index)
        if state is None or state.leader not in self._broker.image.brokers:
            return None
        return state.leader

    async def _once(
        self,
        operation: Operation,
        group_id: str,
        leader: BrokerId | None,
        said: Mapping[ShareKey, Any],
    ) -> dict[ShareKey, Answered]:
        if leader is None:
            return dict.fromkeys(said, Answered(ErrorCode.COORDINATOR_NOT_AVAILABLE))
        if leader == self._broker.broker_id:
            return await self.carry_out(operation, said)
        try:
            body = await self._links.request(
                leader, operation.asked(group_id, said), timeout_ms=_REQUEST_TIMEOUT_MS
            )
        except OttlaError as error:
            return dict.fromkeys(said, Answered(error.code, message=error.message))
        told = operation.of_response(group_id, body)
        missing = Answered(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        return {key: told.get(key, missing) for key in said}

    async def carry_out(
        self, operation: Operation, said: Mapping[ShareKey, Any]
    ) -> dict[ShareKey, Answered]:
        """Carry an operation out by the coordinators of this broker, once."""
        loop = asyncio.get_running_loop()
        waiting: list[asyncio.Future[Answered]] = []
        for key, what in said.items():
            future: asyncio.Future[Answered] = loop.create_future()
            waiting.append(future)
            self._states.run(key, operation.command(key, what), _setter(future))
        return dict(zip(said, await asyncio.gather(*waiting), strict=True))


def _setter(future: "asyncio.Future[Answered]") -> Any:
    def answer(answered: Answered) -> None:
        if not future.done():
            future.set_result(answered)

    return answer
