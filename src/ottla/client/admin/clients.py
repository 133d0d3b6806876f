"""What Ottla's brokers know of clients: the topics that they use, and why their requests wait."""

from dataclasses import dataclass
from typing import Any

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import TopicPartition
from ottla.client.admin.calls import Calls
from ottla.client.common.arguments import Names, checks_calls, name_list
from ottla.client.common.errors import check
from ottla.client.common.offset_account import filled
from ottla.wire.api import key_name
from ottla.wire.messages import client_use as messages
from ottla.wire.messages.client_use import (
    ClientDelaysRequest,
    ClientDelaysResponse,
    ClientUsageRequest,
    ClientUsageResponse,
)

Note = messages.DelayReason | messages.SlowRequest | messages.ClientFailure


@dataclass(frozen=True, slots=True)
class ClientUse:
    """The use of a topic by a client on one broker. Times in ms since 1970.

    `direction` is `produce` or `fetch`. `library` is empty if the client did not name it.
    """

    broker_id: int
    topic: str
    direction: str
    client_id: str
    principal: str
    library: str
    first_ms: int
    last_ms: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class ClientUsage:
    """The uses of topics on all brokers. Times in ms since 1970.

    All brokers know of every use of a topic since the time in `since_ms`, which lacks topics that a
    broker does not watch yet. A broker in `gaps_ms` started at that time after a crash, and up to a
    minute of uses before it is unknown. `silent` lists the brokers that did not answer.
    """

    uses: tuple[ClientUse, ...]
    since_ms: dict[str, int]
    gaps_ms: dict[int, int]
    silent: dict[int, OttlaError]


@dataclass(frozen=True, slots=True)
class DelayReason:
    """Slow requests of a client that waited for the same thing. Times in ms, or ms since 1970.

    `reason` is one of `flush`, `follower` (its broker id is `detail`), `quota`, `transaction
    check`, `size`, `held the loop`, `other`. `place` is None if no single partition made them wait.
    """

    broker_id: int
    client_id: str
    api: str
    reason: str
    detail: str
    place: TopicPartition | None
    first_ms: int
    last_ms: int
    count: int
    total_ms: int
    longest_ms: int


@dataclass(frozen=True, slots=True)
class SlowRequest:
    """One of a client's slowest requests, answered at `at_ms` (since 1970)."""

    broker_id: int
    client_id: str
    api: str
    reason: str
    detail: str
    place: TopicPartition | None
    at_ms: int
    took_ms: int


@dataclass(frozen=True, slots=True)
class ClientFailure:
    """A failure of a client's requests that repeats since `first_ms`; `detail` says it in words."""

    broker_id: int
    client_id: str
    api: str
    code: ErrorCode
    place: TopicPartition | None
    first_ms: int
    last_ms: int
    count: int
    detail: str


@dataclass(frozen=True, slots=True)
class ClientDelays:
    """The slow and failed requests of some clients on all brokers, which keep about 20 minutes."""

    reasons: tuple[DelayReason, ...]
    slowest: tuple[SlowRequest, ...]
    failures: tuple[ClientFailure, ...]
    silent: dict[int, OttlaError]


@checks_calls()
class Clients:
    """`admin.clients`: which topics clients use, and why their requests wait or fail."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    async def usage(self, topics: Names | None = None) -> ClientUsage:
        """Return the uses of `topics` (None: of all) that live brokers remember.

        Raises UnsupportedByBroker if the brokers are not Ottla's.
        """
        request = ClientUsageRequest(topics=None if topics is None else name_list(topics))
        uses: list[ClientUse] = []
        since_ms: dict[str, list[int]] = {}
        gaps_ms: dict[int, int] = {}
        silent: dict[int, OttlaError] = {}
        async for broker_id, answer in self._calls.ask_each_ottla(
            request, ClientUsageResponse, "does not count the use of topics", silent
        ):
            check(answer.error_code, "list the users of topics", answer.error_message)
            if answer.gap_ms >= 0:
                gaps_ms[broker_id] = answer.gap_ms
            for topic in answer.topics:
                since_ms.setdefault(topic.topic, []).append(topic.since_ms)
                uses += [
                    filled(ClientUse, one, broker_id=broker_id, topic=topic.topic)
                    for one in topic.uses
                ]
        known = {topic: max(times) for topic, times in since_ms.items() if min(times) >= 0}
        return ClientUsage(tuple(uses), known, gaps_ms, silent)

    async def delays(self, client_ids: Names) -> ClientDelays:
        """Return the slow and failed requests of `client_ids` that live brokers remember.

        Raises UnsupportedByBroker if the brokers are not Ottla's.
        """
        request = ClientDelaysRequest(client_ids=name_list(client_ids))
        silent: dict[int, OttlaError] = {}
        reasons: list[DelayReason] = []
        slowest: list[SlowRequest] = []
        failures: list[ClientFailure] = []
        async for broker_id, answer in self._calls.ask_each_ottla(
            request, ClientDelaysResponse, "does not note slow requests", silent
        ):
            check(answer.error_code, "describe slow requests", answer.error_message)
            for client in answer.clients:
                source = (broker_id, client.client_id)
                reasons += [filled(DelayReason, one, **_of(source, one)) for one in client.reasons]
                slowest += [filled(SlowRequest, one, **_of(source, one)) for one in client.slowest]
                failures += [
                    filled(ClientFailure, one, **_of(source, one), code=ErrorCode(one.code))
                    for one in client.failures
                ]
        slowest.sort(key=lambda one: -one.took_ms)
        return ClientDelays(tuple(reasons), tuple(slowest), tuple(failures), silent)


def _of(source: tuple[int, str], note: Note) -> dict[str, Any]:
    """Return the fields of a note that are not as in the message."""
    broker_id, client_id = source
    place = TopicPartition(note.topic, note.partition) if note.topic else None
    return {
        "broker_id": broker_id,
        "client_id": client_id,
        "api": key_name(note.api),
        "place": place,
    }
