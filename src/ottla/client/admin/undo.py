"""Changes that Ottla's brokers recorded, and deleted topics that can be restored."""

from dataclasses import dataclass
from uuid import UUID

from ottla.client.admin.calls import Calls
from ottla.client.common.arguments import checks_calls
from ottla.client.common.errors import check
from ottla.wire.messages.undo import (
    DescribeUndoRequest,
    DescribeUndoResponse,
    RestoreTopicRequest,
    RestoreTopicResponse,
    UndoableChange,
)

_LACKS = "records no changes"


@dataclass(frozen=True, slots=True)
class RecordedChange:
    """A change that can be undone, and the client that made it.

    `kind` is `topic`, `broker`, `group` or `client_metrics` (their settings), `quota`, `offsets`
    (of a group) or `deleted_topic`. `values` has (name, value before, value after), with None for a
    value that is not set. A deleted topic has no values; its records are removed at `until_ms`.
    """

    id: str
    kind: str
    name: str
    at_ms: int
    principal: str
    client_id: str
    host: str
    values: tuple[tuple[str, str | None, str | None], ...]
    topic_id: UUID
    partitions: int
    size_bytes: int
    until_ms: int


@checks_calls()
class Undo:
    """`admin.undo`: changes that can be undone."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    async def all(self) -> list[RecordedChange]:
        """Return the last changes and the deleted topics, the newest first.

        Raises UnsupportedByBroker if the brokers are not Ottla's.
        """

        async def ask() -> DescribeUndoResponse:
            broker_id = await self._calls.cluster.controller()
            request = DescribeUndoRequest()
            answer = await self._calls.ask_ottla(broker_id, request, DescribeUndoResponse, _LACKS)
            check(answer.error_code, "list what can be undone", answer.error_message)
            return answer

        answer = await self._calls.retried(ask)
        return [_recorded(change) for change in reversed(answer.changes)]

    async def restore_topic(self, topic_id: UUID, name: str) -> None:
        """Create a deleted topic again, with its id, settings, records and committed offsets.

        Raises BrokerRefused if the name is in use or the records are gone.
        """
        cluster = self._calls.cluster
        timeout_ms = cluster.options.request_timeout_ms
        request = RestoreTopicRequest(topic_id=topic_id, name=name, timeout_ms=timeout_ms)
        answer = await self._calls.ask_ottla(
            await cluster.controller(), request, RestoreTopicResponse, _LACKS
        )
        check(answer.error_code, f"restore topic {name!r}", answer.error_message)


def _recorded(change: UndoableChange) -> RecordedChange:
    values = tuple((one.name, one.before, one.after) for one in change.values)
    return RecordedChange(
        change.id,
        change.kind,
        change.name,
        change.at_ms,
        change.principal,
        change.client_id,
        change.host,
        values,
        change.topic_id,
        change.partitions,
        change.size_bytes,
        change.until_ms,
    )
