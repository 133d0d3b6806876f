"""A fetch session (KIP-227) from the follower's side: the requests it sends, and their order."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from uuid import UUID

from ottla.base.settings import BrokerSettings
from ottla.replica.registration import Registration
from ottla.wire.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ForgottenTopic,
    ReplicaState,
)

_INITIAL_EPOCH = 0
_IN_FLIGHT_MAX = 2


@dataclass(frozen=True, slots=True)
class FetchLimits:
    """The limits of a fetch, from Kafka's replica.fetch.* and replica.socket.timeout.ms."""

    max_wait_ms: int
    min_bytes: int
    partition_max_bytes: int
    response_max_bytes: int
    backoff_ms: int
    timeout_ms: int


class FollowerSession:
    """The fetch session with one broker; after an error, a new session replaces it."""

    def __init__(self, limits: FetchLimits) -> None:
        self._limits = limits
        # The number of sessions ended so far. Answers to requests of an ended session are ignored.
        self.run = 0
        # Requests not answered yet.
        self.in_flight = 0
        self._id = 0
        self._epoch = _INITIAL_EPOCH

    @property
    def may_send(self) -> bool:
        """Whether another request may be sent: two at a time, one until the session id is known."""
        if not self.in_flight:
            return True
        return self.in_flight < _IN_FLIGHT_MAX and self._epoch != _INITIAL_EPOCH

    def request(
        self,
        registration: Registration,
        questions: Mapping[UUID, list[FetchPartition]],
        forgotten: Iterable[tuple[UUID, int]],
    ) -> FetchRequest:
        """Build the next request, with the partitions to fetch and those to forget."""
        dropped: dict[UUID, list[int]] = {}
        if self._epoch != _INITIAL_EPOCH:
            for topic_id, index in forgotten:
                dropped.setdefault(topic_id, []).append(index)
        request = FetchRequest(
            replica_state=ReplicaState(
                replica_id=registration.broker_id, replica_epoch=registration.broker_epoch
            ),
            max_wait_ms=self._limits.max_wait_ms,
            min_bytes=self._limits.min_bytes,
            max_bytes=self._limits.response_max_bytes,
            session_id=self._id,
            session_epoch=self._epoch,
            topics=[
                FetchTopic(topic_id=topic_id, partitions=asked)
                for topic_id, asked in questions.items()
            ],
            forgotten_topics_data=[
                ForgottenTopic(topic_id=topic_id, partitions=indexes)
                for topic_id, indexes in dropped.items()
            ],
        )
        self.in_flight += 1
        if self._epoch != _INITIAL_EPOCH:
            self._epoch = self._epoch % (2**31 - 1) + 1
        return request

    def on_answer(self, session_id: int) -> None:
        """Handle an answer without an error. The first one of a session carries its id."""
        if self._epoch == _INITIAL_EPOCH:
            self._id, self._epoch = session_id, 1

    def end(self) -> None:
        """End this session; the next request begins another."""
        self.run += 1
        self.in_flight = 0
        self._id = 0
        self._epoch = _INITIAL_EPOCH


def fetch_limits(settings: BrokerSettings) -> FetchLimits:
    """The fetchers' limits, from the broker's settings."""
    max_wait_ms = settings.integer("replica.fetch.wait.max.ms")
    return FetchLimits(
        max_wait_ms=max_wait_ms,
        min_bytes=settings.integer("replica.fetch.min.bytes"),
        partition_max_bytes=settings.integer("replica.fetch.max.bytes"),
        response_max_bytes=settings.integer("replica.fetch.response.max.bytes"),
        backoff_ms=settings.integer("replica.fetch.backoff.ms"),
        timeout_ms=settings.integer("replica.socket.timeout.ms") + max_wait_ms,
    )
