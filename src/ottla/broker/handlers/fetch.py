"""Fetch (1), versions 4-18: returns records, with long polling and fetch sessions.

It waits for `min_bytes` or `max_wait_ms`, whichever comes first (P10). The first batch is sent in
full even if it exceeds the maximum size (KIP-74). Related KIPs are: sessions KIP-227, topic ids
from version 13 on KIP-516, epochs KIP-320 and KIP-595, fetches from nearby followers KIP-392, new
leaders in the answer KIP-951. Only a broker that has proven its id may fetch as a replica; see
`replication.replica_sessions`.
"""

from dataclasses import dataclass

from ottla.base.errors import ErrorCode, OttlaError
from ottla.broker.cluster.admission import require_broker
from ottla.broker.fetch.allowed import NOTHING_DENIED, can_be_remembered, readable_by
from ottla.broker.fetch.delayed import FOLLOWERS_SINCE, DelayedFetch
from ottla.broker.fetch.parts import FetchParts
from ottla.broker.fetch.read import failed, read_all
from ottla.broker.fetch.reply import FetchReply, FullReply, IncrementalReply, by_topic
from ottla.broker.fetch.sessions import (
    FINAL_EPOCH,
    INITIAL_EPOCH,
    NO_SESSION,
    PartitionKey,
    WantedPartition,
    merge,
)
from ottla.broker.replication.replica_selector import RackAwareSelector
from ottla.broker.replication.replica_sessions import DelayedReplicaFetch, ReplicaSessions
from ottla.broker.requests.handler import Api, Handler, Versions
from ottla.broker.requests.needs import free
from ottla.broker.requests.request import RequestContext
from ottla.wire.messages.fetch import FetchRequest, FetchResponse

_READ_COMMITTED = 1
_TOPIC_IDS_SINCE = 13
_REPLICA_STATE_SINCE = 15


@dataclass(slots=True, eq=False, repr=False)
class Fetch(Handler):
    """Serves Fetch."""

    api = Api(
        FetchRequest,
        FetchResponse,
        Versions(4, 18),
        needs=free,
        # A consumer of 10,000 partitions in 10,000 topics has 20,000 elements in its first request.
        fewer_elements_max=24_000,
    )

    parts: FetchParts
    replica_sessions: ReplicaSessions
    replica_selector: RackAwareSelector | None

    def handle(self, request: RequestContext, body: FetchRequest) -> FetchResponse | None:
        """Answer with the available records, or wait for more."""
        replica_id = body.replica_state.replica_id if request.version >= 15 else body.replica_id
        if replica_id >= 0:
            require_broker(request, "Fetch", replica_id)
            return self._serve_follower(request, body)
        body.max_bytes = min(body.max_bytes, self.parts.settings.integer("fetch.max.bytes"))
        wanted, reply = self._open(request, body)
        denied, rules = NOTHING_DENIED, 0
        if request.access is not None:
            rules = request.access.authorizer.version
            wanted, denied = readable_by(request, self.parts.partitions, wanted)
        if request.throttle is not None and not request.throttle.make_room(body):
            return reply.nothing(self.parts.sessions)
        committed = body.isolation_level == _READ_COMMITTED
        found = read_all(
            self.parts.partitions,
            wanted,
            body.max_bytes,
            committed=committed,
            from_followers=request.version >= FOLLOWERS_SINCE,
        )
        if denied:
            found.add_denied(denied)
        if self.replica_selector is not None and body.rack_id:
            self.replica_selector.point(found, body.rack_id)
        if (
            found.urgent
            or found.size_bytes >= body.min_bytes
            or body.max_wait_ms <= 0
            or not found.answers
        ):
            found.note_use(request, self.parts.partitions)
            found.count()
            response = reply.build(found)
            self.parts.new_leaders.add_to_fetch(request, response)
            return response
        DelayedFetch(self.parts, request, body, wanted, reply, found.partitions, rules).start()
        return None

    def _serve_follower(self, request: RequestContext, body: FetchRequest) -> FetchResponse | None:
        """Answer a follower with new records, or wait; its earlier waiting fetch is ended."""
        if request.version < _REPLICA_STATE_SINCE:
            raise OttlaError(
                ErrorCode.UNSUPPORTED_VERSION,
                f"followers fetch with version {_REPLICA_STATE_SINCE}",
            )
        now_ms = self.parts.runtime.clock.monotonic_ms()
        session = self.replica_sessions.take(body, now_ms)
        if session.waiting is not None:
            session.waiting.answer()
        if session.is_ready or body.session_epoch == INITIAL_EPOCH or body.max_wait_ms <= 0:
            return session.respond(body.max_bytes, now_ms)
        DelayedReplicaFetch(
            self.parts.runtime, self.replica_sessions, request, session, body.max_bytes
        ).start(body.max_wait_ms)
        return None

    def _open(
        self, request: RequestContext, body: FetchRequest
    ) -> tuple[list[tuple[PartitionKey, WantedPartition]], FetchReply]:
        """Return the partitions to read, and the builder of a full or an incremental answer.

        Raises OttlaError if the session is unknown, or cannot remember the requested partitions.
        """
        topic_ids = request.version >= _TOPIC_IDS_SINCE
        asked = _asked(body, uses_topic_ids=topic_ids)
        sessions = self.parts.sessions
        now_ms = self.parts.runtime.clock.monotonic_ms()
        if body.session_epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            if body.session_id != NO_SESSION:
                sessions.close(body.session_id)
            session = None
            if body.session_epoch == INITIAL_EPOCH and self._can_remember(request, asked):
                session = sessions.open(asked, uses_topic_ids=topic_ids, now_ms=now_ms)
            return asked, FullReply(session)
        session = sessions.resume(
            body.session_id, body.session_epoch, uses_topic_ids=topic_ids, now_ms=now_ms
        )
        added = [each for each in asked if each[0] not in session.partitions]
        if not self._can_remember(request, added):
            sessions.close(session.id)
            raise OttlaError(
                ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
                "a fetch session remembers only partitions that exist and may be read: ask for all"
                " of them in each request",
            )
        forgotten = [
            PartitionKey(topic.topic_id if topic_ids else topic.topic, index)
            for topic in body.forgotten_topics_data
            for index in topic.partitions
        ]
        merge(session, asked, forgotten)
        wanted = [(key, remembered.wanted) for key, remembered in session.partitions.items()]
        return wanted, IncrementalReply(session)

    def _can_remember(
        self, request: RequestContext, asked: list[tuple[PartitionKey, WantedPartition]]
    ) -> bool:
        return can_be_remembered(request, self.parts.partitions, (key for key, _ in asked))

    @staticmethod
    def on_error(
        body: FetchRequest, code: ErrorCode, _message: str | None, version: int
    ) -> FetchResponse:
        """Return a response with the error at the top level, before version 7 in each partition."""
        if version >= 7:
            return FetchResponse(error_code=code)
        keys = _asked(body, uses_topic_ids=False)
        return FetchResponse(
            responses=by_topic([(key, failed(key.partition, code)) for key, _ in keys])
        )


def _asked(
    body: FetchRequest, *, uses_topic_ids: bool
) -> list[tuple[PartitionKey, WantedPartition]]:
    return [
        (
            PartitionKey(topic.topic_id if uses_topic_ids else topic.topic, part.partition),
            WantedPartition(
                part.fetch_offset,
                part.partition_max_bytes,
                part.current_leader_epoch,
                part.last_fetched_epoch,
            ),
        )
        for topic in body.topics
        for part in topic.partitions
    ]
