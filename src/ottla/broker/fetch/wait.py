"""A known fetch of one partition that waits for records, like `delayed` for any fetch.

If records arrive, which is the usual case, it is answered without the codec. In every other case
(timeout, a new leader, changed ACLs, an error) a `DelayedFetch` continues it and answers.
"""

from ottla.broker.fetch.delayed import DelayedFetch
from ottla.broker.fetch.known import KnownFetch
from ottla.broker.fetch.parts import FetchParts
from ottla.broker.fetch.reply import FullReply, IncrementalReply
from ottla.broker.partitions.waiters import Woken
from ottla.broker.requests.access import Access
from ottla.broker.requests.auditing import Auditing
from ottla.broker.requests.request import RequestContext
from ottla.broker.usage.table import ConnectionUse
from ottla.network.connection import Connection
from ottla.wire.codec import decode
from ottla.wire.frames import decode_request_header


class FetchWait(Woken):
    """Waits for its partition until it is answered or handed to the slow path."""

    __slots__ = (
        "_access",
        "_audit",
        "_connection",
        "_deadline",
        "_done",
        "_frame",
        "_known",
        "_listener",
        "_parts",
        "_received_ms",
        "_rules",
        "_slot",
        "_use",
    )

    def __init__(
        self,
        parts: FetchParts,
        connection: Connection,
        listener: str,
        known: KnownFetch,
        frame: bytes,
        use: ConnectionUse,
        access: Access | None,
        audit: Auditing | None,
    ) -> None:
        super().__init__(parts.runtime)
        self._parts = parts
        self._connection = connection
        self._listener = listener
        self._known = known
        self._frame = frame
        self._use = use
        self._access = access
        self._audit = audit
        # The version of the ACLs by which the fetch was allowed.
        self._rules = 0 if access is None else access.authorizer.version
        self._done = False

    def start(self) -> None:
        """Start waiting, in a reserved place in the order of answers.

        The session's epoch must have been increased already.
        """
        runtime, known = self._runtime, self._known
        known.use.seen = True
        self._received_ms = runtime.clock.monotonic_ms()
        self._slot = self._connection.defer(known.size)
        self._slot.on_abandoned = self._finish
        self._deadline = runtime.purgatory.schedule(known.max_wait_ms, self._hand_on)
        known.partition.add_waiter(self)

    # Hot: once per waiting fetch, or once per append if it needs several.
    def _look(self) -> None:
        if self._done:
            return
        known = self._known
        access = self._access
        if access is not None and access.authorizer.version != self._rules:
            self._hand_on()
            return
        if not known.fits_leader() or not known.fits(known.session):
            self._hand_on()
            return
        parts = known.read(self._frame, known.offset_of(self._frame))
        if parts is None:
            self._hand_on()
        elif parts:
            self._finish()
            if (on_sent := self._parts.partitions.on_sent) is not None:
                header, _ = decode_request_header(self._frame)
                offset = known.offset_of(self._frame)
                on_sent(self._connection, header.client_id, known.partition, offset, parts[1])
            self._slot.answer(parts)

    def _hand_on(self) -> None:
        """Continue the fetch on the slow path, with its remaining time."""
        self._finish()
        known = self._known
        header, position = decode_request_header(self._frame)
        body = decode(known.request_type, known.version, self._frame, position)
        waited_ms = self._runtime.clock.monotonic_ms() - self._received_ms
        body.max_bytes = known.max_bytes
        body.max_wait_ms = max(0, known.max_wait_ms - waited_ms)
        request = RequestContext(
            header, self._connection, self._listener, self._received_ms, known.size
        )
        request.access, request.audit = self._access, self._audit
        request.use = self._use
        request.wait_in(self._slot)
        session = known.session
        reply = FullReply(None) if session is None else IncrementalReply(session)
        wanted = [(known.key, known.wanted_at(known.offset_of(self._frame)))]
        DelayedFetch(
            self._parts, request, body, wanted, reply, [known.partition], self._rules
        ).take_over()

    def _finish(self) -> None:
        self._done = True
        self._runtime.purgatory.cancel(self._deadline)
        self._known.partition.waiters.pop(self, None)
