"""Serves the fetches of followers: one session per fetcher, with incremental requests and answers.

A follower asks for a partition once, with its fetch offset, and is answered once: with records, an
error, a divergence, or a new high watermark or log start offset. Then it asks again. So a fetch
names only partitions that changed since the previous one, and thousands of idle partitions cost
nothing. Partitions notify their sessions of changes; a waiting fetch is answered at the end of the
turn.
"""

import random
from collections.abc import Iterable
from uuid import UUID

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import BrokerId
from ottla.broker.fetch.sessions import PartitionKey
from ottla.broker.partitions.partition import Partition
from ottla.broker.partitions.partitions import Partitions
from ottla.broker.partitions.waiters import Woken
from ottla.broker.replication.replica_session import ReplicaSession
from ottla.broker.replication.roles import Answer, Roles
from ottla.broker.replication.throttles import ReplicaThrottle
from ottla.broker.requests.request import RequestContext
from ottla.broker.runtime.purgatory import Deadline
from ottla.broker.runtime.runtime import Runtime
from ottla.replica.effects import Refuse, ServeFrom
from ottla.replica.registration import NEVER
from ottla.wire.messages.fetch import FetchPartition, FetchRequest


class DelayedReplicaFetch(Woken):
    """A follower's fetch that waits in its session until there is something to answer."""

    __slots__ = ("_deadline", "_max_bytes", "_request", "_session", "_sessions")

    def __init__(
        self,
        runtime: Runtime,
        sessions: "ReplicaSessions",
        request: RequestContext,
        session: ReplicaSession,
        max_bytes: int,
    ) -> None:
        super().__init__(runtime)
        self._sessions = sessions
        self._request = request
        self._session = session
        self._max_bytes = max_bytes
        self._deadline: Deadline | None = None

    def start(self, max_wait_ms: int) -> None:
        """Start waiting."""
        self._session.waiting = self
        self._request.on_abandoned(self._on_abandoned)
        held_ms = self._session.held_ms
        wait_ms = max_wait_ms if held_ms < 0 else min(max_wait_ms, held_ms)
        self._deadline = self._runtime.purgatory.schedule(wait_ms, self.answer)

    def answer(self) -> None:
        """Answer with the records available.

        Called when the wait time is over or the follower has sent its next fetch.
        """
        self._finish()
        self._request.reply(
            self._session.respond(self._max_bytes, self._runtime.clock.monotonic_ms())
        )

    def _look(self) -> None:
        if self._session.waiting is self and self._session.is_ready:
            self.answer()

    def _on_abandoned(self) -> None:
        self._finish()
        self._sessions.close(self._session)

    def _finish(self) -> None:
        if self._deadline is not None:
            self._runtime.purgatory.cancel(self._deadline)
        if self._session.waiting is self:
            self._session.waiting = None


INITIAL_EPOCH = 0
FINAL_EPOCH = -1
_IDLE_MS_MAX = 120_000


class ReplicaSessions:
    """All fetch sessions that followers have with this broker."""

    def __init__(
        self,
        partitions: Partitions,
        roles: Roles,
        throttle: ReplicaThrottle,
        rng: random.Random,
        *,
        news_are_urgent: bool = False,
    ) -> None:
        self._partitions = partitions
        self._roles = roles
        self._throttle = throttle
        self._rng = rng
        self._news_are_urgent = news_are_urgent
        self._sessions: dict[int, ReplicaSession] = {}
        # The time of each broker's last fetch from this broker, in any session.
        self._contact_ms: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    def take(self, body: FetchRequest, now_ms: int) -> ReplicaSession:
        """Find or create the session of a fetch, and enter its requests. Raises OttlaError."""
        session = self._session(body, now_ms)
        session.min_bytes = body.min_bytes
        for topic in body.forgotten_topics_data:
            for index in topic.partitions:
                session.forget(PartitionKey(topic.topic_id, index))
        for asked in body.topics:
            for wanted in asked.partitions:
                key = PartitionKey(asked.topic_id, wanted.partition)
                partition, answer = self._ask(session, asked.topic_id, wanted)
                session.ask(key, wanted, partition, answer)
        session.followed_ms = session.used_ms
        session.used_ms = self._contact_ms[session.broker_id] = now_ms
        if not self._roles.is_confirmed(now_ms):
            self._report_followed(session)
        return session

    def report_followed(self) -> None:
        """Report to all leaders the time until which each follower followed them.

        This is skipped while the store confirms this broker's session. Otherwise only the
        followers' fetches show whether this broker still leads (S33).
        """
        for session in self._sessions.values():
            self._report_followed(session)

    def _report_followed(self, session: ReplicaSession) -> None:
        self._roles.on_still_followed(
            session.broker_id, (e.partition for e in session.entries.values()), session.followed_ms
        )

    def contact_ms(self, broker_id: BrokerId) -> int:
        """Return the time of a broker's last fetch of any partition from this broker."""
        return self._contact_ms.get(broker_id, NEVER)

    def close(self, session: ReplicaSession) -> None:
        """Remove a session."""
        if self._sessions.get(session.id) is session:
            del self._sessions[session.id]
        session.close()

    def _session(self, body: FetchRequest, now_ms: int) -> ReplicaSession:
        state = body.replica_state
        if body.session_epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            self._drop(
                each
                for each in self._sessions.values()
                if each.id == body.session_id
                or (each.broker_id == state.replica_id and each.broker_epoch < state.replica_epoch)
                or now_ms - each.used_ms > _IDLE_MS_MAX
            )
            session = ReplicaSession(
                self._free_id(), state.replica_id, state.replica_epoch, self._throttle, now_ms
            )
            session.news_are_urgent = self._news_are_urgent
            self._sessions[session.id] = session
            return session
        found = self._sessions.get(body.session_id)
        if found is None or found.broker_id != state.replica_id:
            raise OttlaError(
                ErrorCode.FETCH_SESSION_ID_NOT_FOUND, f"there is no session {body.session_id}"
            )
        if found.epoch != body.session_epoch or found.broker_epoch != state.replica_epoch:
            raise OttlaError(
                ErrorCode.INVALID_FETCH_SESSION_EPOCH,
                f"session {found.id} expects epoch {found.epoch}, not {body.session_epoch}",
            )
        found.epoch = found.epoch % (2**31 - 1) + 1
        return found

    def _ask(
        self, session: ReplicaSession, topic_id: UUID, wanted: FetchPartition
    ) -> tuple[Partition | None, Answer]:
        try:
            partition = self._partitions.get_by_id(topic_id, wanted.partition)
        except OttlaError as error:
            return None, Refuse(error.code)
        answer = self._roles.on_follower_fetch(
            partition,
            session.broker_id,
            session.broker_epoch,
            wanted.nonce,
            wanted.fetch_offset,
            wanted.last_fetched_epoch,
            wanted.current_leader_epoch,
        )
        if wanted.is_full and isinstance(answer, ServeFrom):
            self._roles.on_follower_full(partition, session.broker_id)
        return partition, answer

    def _drop(self, sessions: Iterable[ReplicaSession]) -> None:
        for session in list(sessions):
            if session.waiting is not None:
                session.waiting.answer()
            self.close(session)

    def _free_id(self) -> int:
        while True:
            session_id = self._rng.randint(1, 2**31 - 1)
            if session_id not in self._sessions:
                return session_id
