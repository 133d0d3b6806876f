"""Messages about changes that can be undone, and about topics that were deleted."""

from uuid import UUID

from ottla.wire.notation import Message, array, int16, int32, int64, string, uuid


class DescribeUndoRequest(Message, api_key=1034, versions="0", flexible="0+"):
    """DescribeUndo (key 1034, Ottla's own): list the changes that can be undone."""


class UndoValue(Message):
    """An element of `UndoableChange.values`: null values are not set."""

    name: str = string()
    before: str | None = string(nullable="0+")
    after: str | None = string(nullable="0+")


class UndoableChange(Message):
    """An element of `DescribeUndoResponse.changes`, oldest first.

    `kind` is one of `ottla.metadata.undo.StoredChange`, or `deleted_topic`, which has a topic id,
    a number of partitions, a size and a time at which its records are removed.
    """

    id: str = string()
    kind: str = string()
    name: str = string()
    at_ms: int = int64()
    principal: str = string()
    client_id: str = string()
    host: str = string()
    values: list[UndoValue] = array(UndoValue)
    topic_id: UUID = uuid()
    partitions: int = int32()
    size_bytes: int = int64()
    until_ms: int = int64(default=-1)


class DescribeUndoResponse(Message, api_key=1034, versions="0", flexible="0+"):
    """A DescribeUndo response."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    changes: list[UndoableChange] = array(UndoableChange)


class RestoreTopicRequest(Message, api_key=1035, versions="0", flexible="0+"):
    """RestoreTopic (key 1035, Ottla's own): create a deleted topic again, with its records."""

    topic_id: UUID = uuid()
    name: str = string()
    timeout_ms: int = int32()


class RestoreTopicResponse(Message, api_key=1035, versions="0", flexible="0+"):
    """A RestoreTopic response."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
