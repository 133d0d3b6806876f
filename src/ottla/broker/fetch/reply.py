"""Builds the response to a fetch: all partitions, or those that changed in the session."""

from collections.abc import Iterable
from typing import Protocol
from uuid import UUID

from ottla.base.errors import ErrorCode
from ottla.broker.fetch.read import Read
from ottla.broker.fetch.sessions import (
    NO_SESSION,
    FetchSession,
    FetchSessions,
    PartitionKey,
    Remembered,
)
from ottla.wire.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData


class FetchReply(Protocol):
    """Builds the answer to one request: in full, or incrementally."""

    def build(self, found: Read) -> FetchResponse: ...

    def nothing(self, sessions: FetchSessions) -> FetchResponse:
        """Return an empty response, for a throttled client that fetches too early (KIP-219)."""
        ...


class FullReply:
    """Answers every requested partition; the response has the id of the new session, if any."""

    def __init__(self, session: FetchSession | None) -> None:
        self._session = session

    def build(self, found: Read) -> FetchResponse:
        session = self._session
        if session is not None:
            for key, answer in found.answers:
                remembered = session.partitions.get(key)
                if remembered is not None:
                    remember(remembered, answer)
        return FetchResponse(
            session_id=NO_SESSION if session is None else session.id,
            responses=by_topic(found.answers),
        )

    def nothing(self, sessions: FetchSessions) -> FetchResponse:
        """Return a response without a session, so that the client sends a full request next."""
        if self._session is not None:
            sessions.close(self._session.id)
        return FetchResponse(session_id=NO_SESSION)


class IncrementalReply:
    """Answers only partitions that have records, errors or other changes.

    Partitions with records move to the end of the session's order, so that a busy partition does
    not starve the others.
    """

    def __init__(self, session: FetchSession) -> None:
        self._session = session

    def build(self, found: Read) -> FetchResponse:
        partitions = self._session.partitions
        answers = []
        for key, answer in found.answers:
            remembered = partitions.get(key)
            has_records = bool(answer.records)
            if remembered is None or is_news(remembered, answer) or has_records:
                answers.append((key, answer))
            if remembered is not None:
                remember(remembered, answer)
                if has_records:
                    partitions[key] = partitions.pop(key)
        return FetchResponse(session_id=self._session.id, responses=by_topic(answers))

    def nothing(self, _sessions: FetchSessions) -> FetchResponse:
        """Return a response without any partition."""
        return FetchResponse(session_id=self._session.id)


def is_news(remembered: Remembered, answer: PartitionData) -> bool:
    """Return whether an answer without records still differs from the remembered one."""
    return (
        answer.error_code != ErrorCode.NONE
        or answer.diverging_epoch.epoch >= 0
        or answer.high_watermark != remembered.high_watermark
        or answer.log_start_offset != remembered.log_start_offset
    )


def remember(remembered: Remembered, answer: PartitionData) -> None:
    """Remember the answer. After an error, the next answer without one is a change."""
    if answer.error_code != ErrorCode.NONE:
        remembered.high_watermark = -1
    else:
        remembered.high_watermark = answer.high_watermark
        remembered.log_start_offset = answer.log_start_offset


def by_topic(answers: Iterable[tuple[PartitionKey, PartitionData]]) -> list[FetchableTopicResponse]:
    """Group adjacent partitions of the same topic.

    A topic may occur twice if its partitions are not adjacent in the session.
    """
    topics: list[FetchableTopicResponse] = []
    last: str | UUID | None = None
    for key, answer in answers:
        if key.topic is not last and key.topic != last:
            last = key.topic
            topics.append(
                FetchableTopicResponse(topic_id=last)
                if isinstance(last, UUID)
                else FetchableTopicResponse(topic=last)
            )
            topics[-1].partitions = []
        topics[-1].partitions.append(answer)
    return topics
