"""The fast path of Fetch: learns, per connection, the bytes that a consumer's fetches repeat.

Two fetches of the same partition differ only in correlation id, offset and, in a session, the
epoch. If all other bytes are known and there are records to send, the records are located at once,
and the response is a copy of a known one with new numbers. If there are no records yet, `wait`
waits for them. All other fetches take the slow path, through the codec and `handlers/fetch`. Both
paths give the same response.
"""

from ottla.base.errors import OttlaError
from ottla.broker.fetch.known import KnownFetch
from ottla.broker.fetch.parts import FetchParts
from ottla.broker.fetch.sessions import FINAL_EPOCH, INITIAL_EPOCH, NO_SESSION, FetchSession
from ottla.broker.fetch.wait import FetchWait
from ottla.broker.partitions.partition import Partition
from ottla.broker.requests.access import Access
from ottla.broker.requests.auditing import Auditing
from ottla.broker.usage.table import FETCH, ConnectionUse
from ottla.network.connection import Connection
from ottla.wire.codec import decode
from ottla.wire.errors import VersionError
from ottla.wire.frames import Part, decode_request_header
from ottla.wire.messages.fetch import FetchRequest
from ottla.wire.notation import has_field

_NO_EPOCH = -1
# If this many fetches in a row were all different, the connection learns no more of them.
_LEARNT_MAX = 1000


class FetchShortcut:
    """The shortcut of one connection, for its last fetch of a single partition."""

    __slots__ = (
        "_access",
        "_audit",
        "_connection",
        "_known",
        "_learnt",
        "_listener",
        "_now_ms",
        "_parts",
        "_sessions",
        "_use",
    )

    def __init__(
        self,
        parts: FetchParts,
        connection: Connection,
        listener: str,
        use: ConnectionUse,
        access: Access | None = None,
        audit: Auditing | None = None,
    ) -> None:
        self._parts = parts
        self._use = use
        self._connection = connection
        self._listener = listener
        self._access = access
        self._audit = audit
        self._sessions = parts.sessions
        self._now_ms = parts.runtime.clock.monotonic_ms
        self._known: KnownFetch | None = None
        self._learnt = 0

    # Hot: once per request.
    def serve(self, frame: memoryview) -> list[Part] | None:
        """Answer `frame` now or later; do nothing and return None if the fetch is not known."""
        known = self._known
        if known is None or len(frame) != known.size:
            return None
        request = frame.tobytes()
        if not known.matches(request) or not known.fits_leader():
            return None
        session = None
        if known.session is not None:
            epoch = known.epoch_of(request)
            session = self._sessions.expecting(known.session.id, epoch)
            if session is None or not known.fits(session):
                return None
        offset = known.offset_of(request)
        parts = known.read(request, offset)
        if parts is None or (not parts and known.max_wait_ms <= 0):
            return None
        if session is not None:
            self._sessions.use(session, self._now_ms())
            known.want(offset)
        if parts:
            if (on_sent := self._parts.partitions.on_sent) is not None:
                header, _ = decode_request_header(frame)
                on_sent(self._connection, header.client_id, known.partition, offset, parts[1])
        else:
            FetchWait(
                self._parts,
                self._connection,
                self._listener,
                known,
                request,
                self._use,
                self._access,
                self._audit,
            ).start()
        return parts

    def learn(
        self, frame: memoryview, version: int, body: FetchRequest, client_id: str | None
    ) -> None:
        """Learn a fetch that took the slow path, if it is a usual one."""
        if not has_field(type(body), "session_epoch", version) or not _is_usual(body):
            return
        session = None
        if body.session_id != NO_SESSION:
            session = self._sessions.find(body.session_id)
            if session is None or len(session.partitions) != 1:
                return
        partition = self._partition(body, version)
        if partition is None or self._knows(frame, partition, session):
            return
        self._learnt += 1
        if self._learnt > _LEARNT_MAX:
            return
        _, position = decode_request_header(frame)
        # Decoded again, because the handler may have lowered limits in the body.
        body = decode(type(body), version, frame, position)
        max_bytes = min(body.max_bytes, self._parts.settings.integer("fetch.max.bytes"))
        use = self._use.of(partition.topic, FETCH, client_id)
        try:
            self._known = KnownFetch(
                frame.tobytes(), version, body, max_bytes, partition, session, use
            )
        except (ValueError, VersionError):
            self._known = None

    def _knows(self, frame: memoryview, partition: Partition, session: FetchSession | None) -> bool:
        known = self._known
        return (
            known is not None
            and known.partition is partition
            and known.fits(session)
            and known.size == len(frame)
            and known.matches(frame.tobytes())
        )

    def _partition(self, body: FetchRequest, version: int) -> Partition | None:
        topic = body.topics[0]
        index = topic.partitions[0].partition
        partitions = self._parts.partitions
        try:
            if has_field(type(topic), "topic_id", version):
                return partitions.get_by_id(topic.topic_id, index)
            return partitions.get(topic.topic, index)
        except OttlaError:
            return None


def _is_usual(body: FetchRequest) -> bool:
    """Return whether a consumer fetches only one partition, from its leader."""
    if (
        body.replica_id >= 0
        or body.replica_state.replica_id >= 0
        or body.rack_id
        or body.forgotten_topics_data
        or len(body.topics) != 1
        or len(body.topics[0].partitions) != 1
    ):
        return False
    asked = body.topics[0].partitions[0]
    if asked.last_fetched_epoch != _NO_EPOCH or min(asked.partition_max_bytes, body.max_bytes) <= 0:
        return False
    if body.session_id == NO_SESSION:
        return body.session_epoch == FINAL_EPOCH
    return body.session_epoch not in (INITIAL_EPOCH, FINAL_EPOCH)
