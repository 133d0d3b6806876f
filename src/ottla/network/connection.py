"""One client's connection: a shell that serves the requests of a stream and sends their answers.

It owns three parts that do no I/O: `request_cutter` finds the requests in the received bytes,
`answer_order` keeps the answers in the order of the requests, and `pressure` decides whether the
connection is read. This module moves bytes and sets timers.

All whole requests of one receive are served in one turn of the loop, directly in the receive
buffer, which all connections of the loop share. The answers of the turn are sent in few writes. A
request's bytes are valid until `serve` returns: a service that needs them longer copies them.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Final, cast

from ottla.network.answer_order import AnswerOrder
from ottla.network.known_client import KnownClient
from ottla.network.memory_budget import MemoryBudget
from ottla.network.mute_timer import MuteTimer
from ottla.network.output import Output, Piece, held, let_go
from ottla.network.pressure import CLOSING, Effect, Event, Pause, Pressure
from ottla.network.refusals import Refusals
from ottla.network.request_cutter import SIZE_BYTES, BadBytes, RequestCutter
from ottla.network.service import CloseConnection, Hub, Serve, ServeRun, Slot
from ottla.security.principal import Principal
from ottla.wire.parts import Part


def serve_nothing(_frame: memoryview) -> None:
    """Ignore a request, because the connection has ended."""


class _Ended(asyncio.BufferedProtocol):
    """Replaces an ended connection, so that nothing refers to it any more."""

    def get_buffer(self, sizehint: int) -> bytearray:
        return bytearray(sizehint)


# uvloop's TLS keeps references to methods of the protocol; all ended connections share this one.
ENDED: Final = _Ended()


_log = logging.getLogger(__name__)

# The most bytes of one receive. Frames larger than half of this get their own buffer.
RECEIVE_BUFFER_BYTES = 1 << 20
# The number of answers that are sent together while more requests of the turn wait to be served.
# If all answers were sent at the end, a client with few requests in flight would be idle until
# then, and this loop afterwards. A write for each answer costs more than creating the answer.
# Measured: two for small requests, four for large ones.
_ANSWERS_AT_ONCE = 2
_ANSWERS_AT_ONCE_IF_LARGE = 4
_LARGE_REQUEST_BYTES = 4096
# The most requests that are served, and so answered, together: of a client's usual five in flight
# three, then two, so that the client sends more meanwhile. Measured with 8 KiB and 1 KiB: 1.04 and
# 1.4 times as fast as four and one, which leaves one to `serve`; all at once 0.7 and 0.8 times,
# because client and broker then wait for each other.
_RUN_MAX = 3
# While requests wait for memory, connections that hold memory and are slow for this long are
# closed.
_SLOW_S = 10.0


class Connection(KnownClient, asyncio.BufferedProtocol):
    """The protocol object of one accepted socket.

    Hot: the loop over requests accesses fields of the connection's parts directly, where a method
    call would cost as much as the rest of the work for a small request.
    """

    def __init__(self, hub: Hub, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        limits = hub.limits
        self._hub = hub
        self._loop = loop
        self._shared = hub.receive_buffer
        self._cutter = RequestCutter(hub.receive_buffer, limits.request_bytes_max)
        self._order: AnswerOrder[Piece] = AnswerOrder(
            held,
            self._on_answers_ready,
            requests_max=limits.unanswered_requests_max,
            bytes_max=limits.unanswered_bytes_max,
        )
        self._pressure = Pressure()
        # True while requests are served. Their answers are sent by the end of the turn at the
        # latest.
        self._in_turn = False
        self._flush_scheduled = False
        self._muting = MuteTimer(loop, self._on_unmute)
        # Whether the client must still log in: see `limit_requests`.
        self._is_limited = False
        # Called when the connection has ended, for any reason.
        self.on_lost: list[Callable[[], None]] = []
        # Set by every receive, cleared by the sweep for idle connections.
        self.active = True
        self.idle_since_ms = 0
        # Set by a service that can serve several requests at once.
        self.serve_run: ServeRun | None = None
        self._serve = hub.service.attach(self)
        # The functions that serve the held request, and the two that serve later requests.
        self._held: tuple[Serve, Serve, ServeRun | None] | None = None
        self._takes_runs = limits.unanswered_requests_max >= _RUN_MAX
        if not self._takes_runs:
            self.serve_run = None

    # -- called by asyncio

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports have these methods, but not the base class.
        self._transport = cast("asyncio.Transport", transport)
        self.output = Output(self._transport, self._loop, self._on_drained, self._hub.send_buffer)
        self.find_addresses()
        refusal = self._hub.on_opened(self)
        if refusal is not None:
            self.close(refusal)

    def connection_lost(self, _exc: Exception | None) -> None:
        self._pressure.on(Event.LOST)
        self.output.close()
        self._muting.close()
        self._give_back_large()
        self._hub.budget.leave(self)
        self._hub.budget.before_login.forget(self)
        let_go(self._order.abandon())
        callbacks, self.on_lost = self.on_lost, []
        for callback in callbacks:
            callback()
        self._hub.on_closed(self)
        # The functions refer to the connection; the reference cycle would live until garbage
        # collection.
        self._serve, self.serve_run, self._held = serve_nothing, None, None
        if self._transport.get_extra_info("sslcontext") is not None:
            self._transport.set_protocol(ENDED)

    def pause_writing(self) -> None:
        self.output.pause()
        self._on(Event.OUTPUT_BLOCKED)

    def resume_writing(self) -> None:
        self.output.resume()

    def get_buffer(self, _sizehint: int) -> memoryview:
        return self._cutter.get_buffer()

    # Hot: once per receive.
    def buffer_updated(self, nbytes: int) -> None:
        self.active = True
        self._cutter.received(nbytes)
        # READING and its effect SERVE are 0, which needs no look-up in the table.
        if self._pressure.state:
            if self._pressure.on(Event.RECEIVED) is Effect.KEEP:
                self._cutter.keep()
                if self._is_limited:
                    self._hub.budget.before_login.note(self)
                self._pause_reading()
            return
        self._serve_received()
        if self._order.ready:
            self._flush()

    # -- called by the service

    def defer(self, request_bytes: int) -> Slot:
        """Reserve the place of the answer to the current request."""
        return self._order.reserve(request_bytes)

    def serve_with(self, serve: Serve, serve_run: ServeRun | None) -> None:
        """Use these functions to serve requests, beginning with the next receive."""
        self._serve = serve
        self.serve_run = serve_run if self._takes_runs else None

    def limit_requests(self, bytes_max: int | None = None) -> None:
        """Accept no request larger than `bytes_max`; None means the listener's limit.

        Clients that have not logged in get a low limit. Otherwise they could take much memory, even
        by requests that are kept while their answers are delayed.
        """
        most = self._hub.limits.request_bytes_max
        self._is_limited = bytes_max is not None
        if bytes_max is None:
            self._hub.budget.before_login.forget(self)
            self._cutter.limit(most)
        else:
            self._cutter.limit(min(most, bytes_max), SIZE_BYTES + bytes_max)

    def belongs_to(self, principal: Principal) -> bool:
        """Set the principal after a login, and count the connection for its user.

        Return False if the user has too many connections, or the connection has ended.
        """
        if self.closed:
            return False
        self.principal = principal
        refusal = self._hub.on_known(self)
        if refusal is not None:
            self.close(refusal, "max.connections.per.user")
        return refusal is None

    def login_failed(self) -> None:
        """Note a failed login: new connections from the client's address may be delayed."""
        self._hub.failed(self.peer_host)

    def hold(self, then: Serve | None = None) -> None:
        """Put the current request aside; it is served again when `release` is called.

        The service must answer None for it now. If `then` is given, it serves the request the
        second time.
        """
        self._on(Event.HELD)
        if then is None:
            return
        self._held = then, self._serve, self.serve_run
        self._serve, self.serve_run = self._serve_again, None

    def _serve_again(self, frame: memoryview) -> list[Part] | None:
        if self._held is None:
            # Only the first request is the held one; this is a later request of the same turn.
            return self._serve(frame)
        # No reference to `then` may remain: it may hold megabytes.
        (then, self._serve, self.serve_run), self._held = self._held, None
        return then(frame)

    def release(self) -> None:
        """Serve the held request and those that follow it."""
        self._on(Event.RELEASED)

    def mute(self, delay_ms: int) -> None:
        """Stop serving and reading for this long; earlier requests are still answered."""
        if self._start_muting(delay_ms) is Effect.PAUSE:
            self._pause_reading()

    def delay(self, delay_ms: int) -> None:
        """Serve no requests of a new connection until `delay_ms` have passed.

        Pausing the transport at this moment has no effect, because uvloop starts reading
        afterwards. So the connection keeps the first bytes that arrive, and then pauses the
        transport.
        """
        self._start_muting(delay_ms)

    def stop_reading(self) -> None:
        """Stop serving and reading until the connection is closed.

        Earlier requests are still answered.
        """
        self._on(Event.STOPPING)

    @property
    def is_muted(self) -> bool:
        """Return whether a mute or delay is in force."""
        return self._pressure.is_paused_for(Pause.MUTED)

    @property
    def unanswered(self) -> int:
        """Return the number of requests not answered yet."""
        return len(self._order.places)

    @property
    def closed(self) -> bool:
        """Return whether this side has closed the connection, or it has ended.

        Nothing is served or sent after that.
        """
        return not self._pressure.is_open

    def has_left(self) -> bool:
        """Return whether the connection is closed; closes it if the client has closed its side."""
        if not self.closed and self.has_departed():
            self.close_quietly()
        return self.closed

    @property
    def refusals(self) -> Refusals:
        """Return the log of refusals of this client."""
        return self._hub.refusals

    def close(self, reason: str, kind: str = "") -> None:
        """Close at once, and log the reason, at intervals per address and `kind` of reason.

        `kind` defaults to the reason itself.
        """
        # Answer the requests that precede the invalid bytes, if the client reads at all.
        if self._order.ready and not self._must_abort() and self._pressure.is_open:
            self._flush()
        if self._pressure.on(Event.CLOSED) is Effect.CLOSE:
            self._order.close()
            self.refusals.log(
                (self.peer_host, kind or reason),
                lambda: f"closing the connection from {self.peer_host}:{self.peer_port}: {reason}",
            )
        if self._must_abort():
            self._transport.abort()
        else:
            self._transport.close()

    def close_quietly(self) -> None:
        """Close after sending the written data: the listener stops, or the client was idle."""
        self._pressure.on(Event.CLOSED)
        self._order.close()
        self._transport.close()

    def _must_abort(self) -> bool:
        """Return whether the client may never read the data already written."""
        return self.output.blocked or bool(self._order.places)

    # -- serving

    # Hot: once per receive, its loop once per request.
    def _serve_received(self) -> None:
        """Serve the requests received in full, up to one that pauses the connection."""
        cutter, order, pressure = self._cutter, self._order, self._pressure
        serve, serve_run, places = self._serve, self.serve_run, order.places
        answers = 0
        self._in_turn = True
        try:
            while size := cutter.advance():
                follows = cutter.end - cutter.position >= SIZE_BYTES
                run = None
                if follows and serve_run is not None and (not places or order.room >= _RUN_MAX):
                    run = serve_run(cutter.view[cutter.start : cutter.end], _RUN_MAX)
                if run is None:
                    parts = serve(cutter.view[cutter.start + SIZE_BYTES : cutter.position])
                else:
                    run_bytes, parts = run
                    cutter.position = cutter.start + run_bytes
                    follows = cutter.end - cutter.position >= SIZE_BYTES
                    answers = _ANSWERS_AT_ONCE_IF_LARGE
                if not places:
                    if parts:
                        order.ready += held(parts)
                        answers += 1
                        if follows and answers >= (
                            _ANSWERS_AT_ONCE
                            if size < _LARGE_REQUEST_BYTES
                            else _ANSWERS_AT_ONCE_IF_LARGE
                        ):
                            answers = 0
                            self._flush()
                elif order.add(parts):
                    self._on(Event.UNANSWERED_FULL)
                if pressure.state or not follows:
                    break
        except CloseConnection as error:
            self.close(str(error), error.kind)
        except Exception:  # noqa: BLE001  # The supervisor of connections: one may fail, the rest serve on.
            _log.exception(
                "a request from %s:%d failed unexpectedly", self.peer_host, self.peer_port
            )
            self.close("the broker failed to serve its request; the error is logged above")
        self._in_turn = False
        if cutter.position < cutter.end or pressure.state or cutter.view is not self._shared:
            self._end_turn()

    def _end_turn(self) -> None:
        """Save the unserved bytes of the shared buffer; begin to receive a large request."""
        cutter, state = self._cutter, self._pressure.state
        if state >= CLOSING:
            return
        if state and self._pressure.is_paused_for(Pause.HELD):
            cutter.take_back()
        if cutter.is_large_served:
            self._give_back_large()
        if cutter.bad_bytes is not None:
            self._refuse(cutter.bad_bytes)
            return
        large_bytes = cutter.keep()
        if self._is_limited:
            self._hub.budget.before_login.note(self)
        if state or not large_bytes:
            return
        budget = self._hub.budget
        if budget.take(self, large_bytes):
            cutter.begin_large(budget.buffer(large_bytes))
        else:
            self._on(Event.MEMORY_SHORT)
            _look_for_slow(self._loop, budget)

    def _refuse(self, bad_bytes: BadBytes) -> None:
        if bad_bytes.answer:
            self._order.add([bad_bytes.answer])
        self.close(bad_bytes.reason, bad_bytes.kind)

    @property
    def large_received(self) -> int:
        """Return the received bytes of the current large request."""
        return self._cutter.large_received

    def on_memory(self) -> None:
        """Receive the large request that begins in the kept bytes, as it has its memory now."""
        cutter, budget = self._cutter, self._hub.budget
        effect = self._pressure.on(Event.MEMORY_GIVEN)
        if effect is Effect.RETURN:
            budget.give(self)
            return
        cutter.begin_large(budget.buffer(cutter.large_bytes))
        if effect is Effect.GO_ON:
            self._go_on()

    @property
    def kept_bytes(self) -> int:
        """See `network.memory_budget.Keeper`."""
        return self._cutter.kept_bytes

    def on_too_much(self) -> None:
        """Close, because clients that have not logged in hold too many unserved bytes in total."""
        self.close(
            "parts of requests of clients that have not logged in take too much memory, and it has"
            " sent one of the oldest; a login must come whole within moments",
            "login: parts",
        )

    def on_slow(self) -> None:
        """Close, because this large request arrives too slowly while others wait for memory."""
        if not self._pressure.is_paused_for(Pause.MUTED | Pause.HELD):
            self.close(
                f"less than a tenth of its request came in {_SLOW_S:.0f} s, while others wait for"
                " memory; send smaller requests (max.request.size), or raise"
                " queued.max.request.bytes of the broker",
                "request: slow",
            )

    def _give_back_large(self) -> None:
        large = self._cutter.take_large()
        if large is not None:
            self._hub.budget.give_buffer(self, large)

    # -- pressure

    def _on(self, event: Event) -> None:
        """Handle an event that may pause or resume reading."""
        effect = self._pressure.on(event)
        if effect is Effect.PAUSE:
            self._pause_reading()
        elif effect is Effect.GO_ON:
            self._go_on()

    def _pause_reading(self) -> None:
        if not self._transport.is_closing():
            self._transport.pause_reading()

    def _go_on(self) -> None:
        """Resume reading; the requests kept during the pause are served first."""
        assert not self._in_turn
        if self._cutter.return_to_kept():
            self._serve_received()
            if self._order.ready:
                self._schedule_flush()
        if not self._pressure.state and not self._transport.is_closing():
            self._transport.resume_reading()

    def _on_drained(self) -> None:
        self._on(Event.OUTPUT_DRAINED)

    def _start_muting(self, delay_ms: int) -> Effect:
        if self.closed or not self._muting.lengthen(delay_ms):
            return Effect.NOTHING
        return self._pressure.on(Event.MUTED)

    def _on_unmute(self) -> None:
        self._on(Event.UNMUTED)

    # -- answers

    def _on_answers_ready(self) -> None:
        if not self._in_turn:
            self._schedule_flush()

    def _schedule_flush(self) -> None:
        if not self._flush_scheduled:
            self._flush_scheduled = True
            self._loop.call_soon(self._flush_later)

    def _flush_later(self) -> None:
        self._flush_scheduled = False
        if self.closed:
            return
        if self._order.ready:
            self._flush()
        if self._pressure.state and not self._order.is_full:
            self._on(Event.UNANSWERED_ROOM)

    # Hot: once or several times per receive.
    def _flush(self) -> None:
        """Send the ready answers. After a close they stay queued until the connection ends."""
        order = self._order
        if self._pressure.state >= CLOSING:
            return
        ready, order.ready = order.ready, []
        self.output.send(ready)
        if self.output.blocked:
            self._on(Event.OUTPUT_BLOCKED)


def _look_for_slow(loop: asyncio.AbstractEventLoop, budget: MemoryBudget) -> None:
    """While requests wait for memory, close connections that receive a large request slowly."""

    def end_slow() -> None:
        for holder in budget.slow_holders():
            holder.on_slow()
        if budget.is_short:
            _look_for_slow(loop, budget)

    if budget.look():
        loop.call_later(_SLOW_S, end_slow)
