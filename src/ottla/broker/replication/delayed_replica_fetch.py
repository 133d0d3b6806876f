"""A follower's fetch that waits for records; its session's next fetch ends the wait."""

from ottla.broker.partitions.woken import Woken
from ottla.broker.replication.replica_session import ReplicaSession
from ottla.broker.replication.replica_sessions import ReplicaSessions
from ottla.broker.requests.request import RequestContext
from ottla.broker.runtime.purgatory import Deadline
from ottla.broker.runtime.runtime import Runtime


class DelayedReplicaFetch(Woken):
    """Registered with its session until it is answered."""

    __slots__ = ("_deadline", "_max_bytes", "_request", "_session", "_sessions")

    def __init__(
        self,
        runtime: Runtime,
        sessions: ReplicaSessions,
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
        """Answer with the records there are.

        The time is up, or the follower has sent its next fetch.
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
