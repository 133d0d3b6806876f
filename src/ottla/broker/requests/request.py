"""The context of one request: its client, its arrival time, and how to answer it."""

import asyncio
from collections.abc import Callable
from typing import Any

from ottla.base.errors import ErrorCode
from ottla.broker.requests.access import Access
from ottla.broker.requests.auditing import Auditing
from ottla.broker.requests.throttling import RequestThrottle
from ottla.broker.usage.delays import OTHER_WAIT, QUOTA_WAIT, Wait
from ottla.broker.usage.table import ConnectionUse
from ottla.network.connection import Connection
from ottla.network.service import Slot
from ottla.record.validation import Expansion
from ottla.wire.api import ApiKey
from ottla.wire.frames import Part, RequestHeader, encode_response

# Requests that wait by design: for records, or for other members of their group.
_WAITING_APIS = frozenset({ApiKey.FETCH, ApiKey.SHARE_FETCH, ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP})


class RequestContext:
    """Gives a handler everything about a request except its body.

    `listener` is the name of the listener that received it. `received_ms` is a monotonic time.
    """

    __slots__ = (
        "_early",
        "_on_abandoned",
        "_slot",
        "access",
        "amend",
        "audit",
        "connection",
        "expansion",
        "header",
        "listener",
        "received_ms",
        "size",
        "throttle",
        "use",
        "waited_for",
    )

    def __init__(
        self,
        header: RequestHeader,
        connection: Connection,
        listener: str,
        received_ms: int,
        size: int,
    ) -> None:
        self.header = header
        self.connection = connection
        self.listener = listener
        self.received_ms = received_ms
        self.size = size
        # Set for a client's request if quotas are set.
        self.throttle: RequestThrottle | None = None
        # Set for a client's request: counts what it uses, and notes its delays.
        self.use: ConnectionUse | None = None
        # What the request waited for, if its handler knows and the wait may be long.
        self.waited_for: Wait | None = None
        # Set for a client's request if there is an authorizer.
        self.access: Access | None = None
        # Counts the bytes that decompressing the request's batches has produced so far.
        self.expansion = Expansion()
        # Set if there is an audit log.
        self.audit: Auditing | None = None
        # Adds the errors of denied parts to the response.
        self.amend: Callable[[Any], None] | None = None
        self._slot: Slot | None = None
        self._early: list[Part] | None = None
        self._on_abandoned: Callable[[], None] | None = None

    @property
    def version(self) -> int:
        return self.header.api_version

    @property
    def client_id(self) -> str | None:
        return self.header.client_id

    @property
    def client_host(self) -> str:
        return self.connection.peer_host

    @property
    def local_host(self) -> str:
        """Return the address of this broker to which the client connected."""
        return self.connection.local_host

    def on_abandoned(self, callback: Callable[[], None]) -> None:
        """Call `callback` if the client disconnects before its answer.

        May be called while the handler runs, and for a request with a reserved place (`wait_in`).
        """
        if self._slot is None:
            self._on_abandoned = callback
        else:
            self._slot.on_abandoned = callback

    def wait_in(self, slot: Slot) -> None:
        """Use a place in the order of answers that was reserved before."""
        self._slot = slot

    # The response's type depends on the API, which only its handler knows.
    def reply(self, message: Any) -> None:
        """Send the answer: at once if the handler still runs, else in its reserved place."""
        use, slot = self.use, self._slot
        if use is not None and slot is not None and self.header.api_key not in _WAITING_APIS:
            took_ms = use.took_ms(self.received_ms)
            wait = self.waited_for or OTHER_WAIT
            use.note_slow(self.client_id, self.header.api_key, took_ms, wait)
        throttle = self.throttle
        if throttle is None or self._slot is None:
            self._send(self.encode(message))
            return
        throttle.resume()
        parts = self.encode(message)
        throttle.count_time()
        self._send(parts)

    def drop(self) -> None:
        """Finish a deferred request that gets no answer (acks=0)."""
        self._send([])

    def encode(self, message: Any) -> list[Part]:
        self.complete(message)
        header = self.header
        return encode_response(message, header.api_key, header.api_version, header.correlation_id)

    def complete(self, message: Any) -> None:
        """Add the errors of denied parts and the throttle time to the response."""
        if self.amend is not None:
            self.amend(message)
            # The function refers to this request; the reference cycle would live until garbage
            # collection.
            self.amend = _amended
        throttle, use = self.throttle, self.use
        if throttle is not None:
            throttle.on_answer(message)
        if use is not None:
            api_key, client_id = self.header.api_key, self.client_id
            if throttle is not None:
                use.note_slow(client_id, api_key, throttle.delay_ms, QUOTA_WAIT)
            code = getattr(message, "error_code", ErrorCode.NONE)
            if code:
                detail = getattr(message, "error_message", None)
                use.note_failure(client_id, api_key, ErrorCode(code), detail=detail)

    def settle(self) -> list[Part] | None:
        """Return the handler's answer; or None, after reserving a place for a later answer."""
        if self._early is None:
            self._slot = self.connection.defer(self.size)
            self._slot.on_abandoned, self._on_abandoned = self._on_abandoned, None
        return self._early

    def _send(self, parts: list[Part]) -> None:
        if self._slot is None:
            assert self._early is None, "answered twice"
            self._early = parts
        else:
            self._slot.answer(parts)


class PortionContext(RequestContext):
    """A portion of a long request, served as a request of its own (`requests.portions`)."""

    __slots__ = ("answer",)

    def __init__(self, whole: RequestContext, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(
            whole.header, whole.connection, whole.listener, whole.received_ms, whole.size
        )
        self.throttle = whole.throttle
        self.use = whole.use
        self.audit = whole.audit
        self.expansion = whole.expansion
        self.answer: asyncio.Future[Any] = loop.create_future()

    def reply(self, message: Any) -> None:
        """Pass on the answer to this portion, to be joined to the answer of the whole request."""
        if self.amend is not None:
            self.amend(message)
            self.amend = _amended
        if not self.answer.done():
            self.answer.set_result(message)

    def drop(self) -> None:
        """Finish this portion without an answer, as for all portions of the request (acks=0)."""
        if not self.answer.done():
            self.answer.set_result(None)


Reply = Callable[[Any], None]


def _amended(_message: object) -> None:
    """Replace `amend` after the response is complete."""
