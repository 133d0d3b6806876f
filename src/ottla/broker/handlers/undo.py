"""The handlers that list what can be undone, and restore deleted topics."""

from collections.abc import Iterator
from dataclasses import dataclass

from ottla.broker.requests.auditing import AdminChange, topic_need
from ottla.broker.requests.check import RequestCheck
from ottla.broker.requests.handler import Api, Handler, Versions
from ottla.broker.requests.needs import cluster
from ottla.broker.requests.request import RequestContext
from ottla.broker.topics.topics import Topics, patience_ms
from ottla.broker.undo.changes import ChangeLog
from ottla.broker.undo.trash import TrashKeeper
from ottla.metadata.nodes import topic_id_text
from ottla.metadata.undo import Author, DeletedTopic, StoredChange
from ottla.security.names import AclOperation, AclResource
from ottla.wire.messages.undo import (
    DescribeUndoRequest,
    DescribeUndoResponse,
    RestoreTopicRequest,
    RestoreTopicResponse,
    UndoableChange,
    UndoValue,
)


@dataclass(slots=True, eq=False, repr=False)
class DescribeUndo(Handler):
    """DescribeUndo (1034), version 0: lists changes that can be undone, and deleted topics.

    An API of Ottla, advertised to Ottla's clients only.
    """

    api = Api(
        DescribeUndoRequest,
        DescribeUndoResponse,
        Versions(0, 0),
        needs=cluster(AclOperation.DESCRIBE_CONFIGS),
    )

    changes: ChangeLog
    trash: TrashKeeper

    async def handle(
        self, _request: RequestContext, _body: DescribeUndoRequest
    ) -> DescribeUndoResponse:
        """Read the recorded changes and the trash from the store."""
        found = [_change(number, change) for number, change in await self.changes.all()]
        found += [_deleted(deleted) for deleted in await self.trash.all()]
        found.sort(key=lambda one: one.at_ms)
        return DescribeUndoResponse(changes=found)


def _change(number: int, change: StoredChange) -> UndoableChange:
    values = [
        UndoValue(name=name, before=before, after=after)
        for name, (before, after) in change.values.items()
    ]
    return _by(
        change.author,
        UndoableChange(id=str(number), kind=change.kind, name=change.name, values=values),
    )


def _deleted(deleted: DeletedTopic) -> UndoableChange:
    topic = deleted.topic
    return _by(
        deleted.author,
        UndoableChange(
            id=topic_id_text(topic.id),
            kind="deleted_topic",
            name=topic.name,
            topic_id=topic.id,
            partitions=len(topic.partitions),
            size_bytes=deleted.size_bytes,
            until_ms=deleted.until_ms,
        ),
    )


def _by(author: Author, change: UndoableChange) -> UndoableChange:
    change.at_ms = author.at_ms
    change.principal, change.client_id = author.principal, author.client_id
    change.host = author.host
    return change


def _needs(check: RequestCheck[RestoreTopicRequest]) -> None:
    """Require CREATE on the cluster or on the topic, as for a new topic."""
    if not check.sees_cluster(AclOperation.CREATE):
        check.require(AclOperation.CREATE, AclResource.TOPIC, check.body.name)


def _restored(body: RestoreTopicRequest, response: RestoreTopicResponse) -> Iterator[AdminChange]:
    """Return an audit event for the topic."""
    need = topic_need(AclOperation.CREATE, body.name)
    yield AdminChange((need,), {"topic_id": str(body.topic_id)}, response.error_code)


@dataclass(slots=True, eq=False, repr=False)
class RestoreTopic(Handler):
    """RestoreTopic (1035), version 0: creates a deleted topic again, with its id and records.

    An API of Ottla, advertised to Ottla's clients only.
    """

    api = Api(
        RestoreTopicRequest,
        RestoreTopicResponse,
        Versions(0, 0),
        needs=_needs,
        changes=_restored,
    )

    topics: Topics

    async def handle(
        self, _request: RequestContext, body: RestoreTopicRequest
    ) -> RestoreTopicResponse:
        """Restore the topic. Fails if its name is in use."""
        await self.topics.restore(body.topic_id, body.name, timeout_ms=patience_ms(body.timeout_ms))
        return RestoreTopicResponse()
