"""One client's connection: cuts the stream into requests, and sends the answers in their order.

All whole requests of one receive are served in one turn of the loop, in place in a buffer that
every connection of the loop shares; what the turn answers leaves in one write. A request's bytes
are valid until `serve` returns: whoever needs them longer copies them.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from struct import Struct
from typing import cast

from ottla.network.output import Output, Piece, held, let_go
from ottla.network.refusals import Refusals
from ottla.network.service import CloseConnection, Hub, Serve, ServeRun, Slot
from ottla.network.sniff import Foreign, explain_bad_size, foreign_protocol
from ottla.wire.parts import Part

_log = logging.getLogger(__name__)

_SIZE = Struct(">i")
_SIZE_BYTES = _SIZE.size
# What one receive may bring. Frames of more than half of it get a buffer of their own.
RECEIVE_BUFFER_BYTES = 1 << 20
_NOTHING = memoryview(b"")
# Answers of one turn that leave together while more requests of it wait to be served. All in one
# write would leave a client with few requests in flight, and then this loop, with nothing to do;
# each by itself costs more than making it. Measured: two for small requests, four for large ones.
_ANSWERS_AT_ONCE = 2
_ANSWERS_AT_ONCE_IF_LARGE = 4
_LARGE_REQUEST_BYTES = 4096
# Requests that are served together are answered together, too: one more would wait too long.
_RUN_MAX = 4
# How an IPv4 address looks on a socket that serves both families.
_MAPPED = "::ffff:"


class Connection(asyncio.BufferedProtocol):
    """The protocol object of one accepted socket.

    Invariant: `_tail` and `_large` are never both in use.
    """

    def __init__(self, hub: Hub, loop: asyncio.AbstractEventLoop) -> None:
        self._hub = hub
        self._loop = loop
        # Set by a service that can serve several requests at once.
        self.serve_run: ServeRun | None = None
        self._serve_frame = hub.service.attach(self)
        self._shared = hub.receive_buffer
        self._limits = hub.limits
        self._size_max = hub.limits.request_bytes_max
        # Bytes received and not served yet: the head of a frame, or frames held back.
        self._tail = b""
        # A frame too big for the shared buffer, size prefix included, and how much is there.
        self._large = _NOTHING
        self._large_filled = 0
        self._slots: deque[Slot] = deque()
        self._unanswered_bytes = 0
        self._out: list[Piece] = []
        self._flush_scheduled = False
        self._in_turn = False
        self._reading = True
        self._awaits_budget = False
        # Whether the service takes no request now; the one it was offered is kept.
        self._is_held = False
        # Until when nothing is served, by the loop's clock; 0 where nothing says so.
        self._muted_until_s = 0.0
        self._unmute: asyncio.TimerHandle | None = None
        self._greeted = False
        # Who is at the other end, as far as the service knows; its own business.
        self.identity: object | None = None
        # What the client calls itself (KIP-511), as far as the service was told.
        self.software = ""
        self.closed = False
        # Called when the connection has ended, however it did.
        self.on_lost: list[Callable[[], None]] = []
        # Set by every receive, cleared by the sweep for idle connections.
        self.active = True
        self.idle_since_ms = 0

    # -- asyncio's side

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports have the methods, not the base class.
        self._transport = cast("asyncio.Transport", transport)
        self.output = Output(self._transport, self._loop, self._relieve, self._hub.send_buffer)
        peer = transport.get_extra_info("peername") or ("", 0)
        local = transport.get_extra_info("sockname") or ("", 0)
        self.peer_host: str = peer[0].removeprefix(_MAPPED)
        self.peer_port: int = peer[1]
        self.local_host: str = local[0].removeprefix(_MAPPED)
        refusal = self._hub.on_opened(self)
        if refusal is not None:
            self.close(refusal)

    def connection_lost(self, _exc: Exception | None) -> None:
        self.closed = True
        self.output.close()
        if self._unmute is not None:
            self._unmute.cancel()
        self._drop_large()
        slots, self._slots = self._slots, deque()
        for slot in slots:
            if slot.pieces is not None:
                let_go(slot.pieces)
            elif slot.on_abandoned is not None:
                slot.on_abandoned()
                slot.on_abandoned = None
        let_go(self._out)
        self._out = []
        for callback in self.on_lost:
            callback()
        self._hub.on_closed(self)

    def pause_writing(self) -> None:
        self.output.pause()
        self._apply_pressure()

    def resume_writing(self) -> None:
        self.output.resume()

    def get_buffer(self, _sizehint: int) -> memoryview:
        if self._large_filled:
            return self._large[self._large_filled :]
        tail = self._tail
        if not tail:
            return self._shared
        length = len(tail)
        self._shared[:length] = tail
        return self._shared[length:]

    # Hot: once per receive.
    def buffer_updated(self, nbytes: int) -> None:
        self.active = True
        self._in_turn = True
        if self._large_filled:
            self._fill_large(nbytes)
        else:
            end = len(self._tail) + nbytes
            consumed = self._serve_frames(self._shared, end)
            if consumed == end:
                self._tail = b""
            else:
                self._keep(self._shared[consumed:end])
        self._in_turn = False
        if self._out:
            self._flush()

    # -- the service's side

    def defer(self, request_bytes: int) -> Slot:
        """Reserve the place of the answer to the request that is being served."""
        slot = Slot(self, request_bytes, None)
        self._slots.append(slot)
        self._unanswered_bytes += request_bytes
        return slot

    def hold(self) -> None:
        """Take back the request that is being served, and offer it again at `release`.

        The service answers None for it.
        """
        self._is_held = True
        self._apply_pressure()

    def release(self) -> None:
        """Offer the request that was held, and what came after it."""
        if not self._is_held or self.closed:
            return
        self._is_held = False
        if self._large_filled:
            self._fill_large(0)
            self._flush_soon()
        self._relieve()

    def mute(self, delay_ms: int) -> None:
        """Serve nothing more for so long, nor read it; what was asked before is answered."""
        until_s = self._loop.time() + delay_ms / 1000
        if self.closed or until_s <= self._muted_until_s:
            return
        if self._unmute is not None:
            self._unmute.cancel()
        self._muted_until_s = until_s
        self._unmute = self._loop.call_later(delay_ms / 1000, self._on_unmute)
        self._apply_pressure()

    def delay(self, delay_ms: int) -> None:
        """Serve nothing for so long, of a connection that is just being made.

        Its transport may begin to read after this, whatever it was told: what comes is held.
        """
        serve = self._serve_frame

        def hold_back(_frame: memoryview) -> None:
            self.hold()

        self._serve_frame = hold_back
        self._unmute = self._loop.call_later(delay_ms / 1000, self._on_delayed, serve)

    @property
    def is_muted(self) -> bool:
        """Whether it was told to be, and the time is not over."""
        return self._unmute is not None

    def on_slot_answered(self) -> None:
        """Move what is answered, in order, to the output of this turn."""
        slots = self._slots
        while slots and slots[0].pieces is not None:
            first = slots.popleft()
            self._unanswered_bytes -= first.request_bytes
            assert first.pieces is not None
            self._out += first.pieces
        if not self._flush_scheduled and not self._in_turn:
            self._flush_scheduled = True
            self._loop.call_soon(self._flush_later)

    @property
    def unanswered(self) -> int:
        """Requests whose answers are still to come."""
        return len(self._slots)

    @property
    def refusals(self) -> Refusals:
        """Where a refusal of this client is logged."""
        return self._hub.refusals

    def close(self, reason: str, kind: str = "") -> None:
        """Close at once, and say why in the log: once in a while per address and `kind` of reason.

        `kind` is the reason itself where it is not given.
        """
        if not self.closed:
            # What came before the bytes that end it is answered, where the client reads at all.
            if self._out and not self._slots and not self.output.blocked:
                self._flush()
            self.closed = True
            self.refusals.log(
                (self.peer_host, kind or reason),
                lambda: f"closing the connection from {self.peer_host}:{self.peer_port}: {reason}",
            )
        if self.output.blocked or self._slots:
            self._transport.abort()
        else:
            self._transport.close()

    def close_quietly(self) -> None:
        """Close after what was written is sent: the listener stops, or the client was idle."""
        self.closed = True
        self._transport.close()

    # -- frames

    # Hot: once per receive, its loop once per request.
    def _serve_frames(self, view: memoryview, end: int) -> int:
        """Serve the whole frames before `end`; return the position of the first one not served."""
        position = answers = 0
        while end - position >= _SIZE_BYTES:
            (size,) = _SIZE.unpack_from(view, position)
            suspicious = not self._greeted or not 0 < size <= self._size_max
            if suspicious and not self._is_acceptable(bytes(view[position : position + 4]), size):
                return end
            frame_end = position + _SIZE_BYTES + size
            if frame_end > end:
                break
            slots = self._slots
            at_once = (
                _ANSWERS_AT_ONCE_IF_LARGE if size >= _LARGE_REQUEST_BYTES else _ANSWERS_AT_ONCE
            )
            run = None
            if end - frame_end >= _SIZE_BYTES and self.serve_run is not None:
                run = self._serve_run(view[position:end])
            if run is not None:
                consumed, parts = run
                frame_end = position + consumed
                answers = at_once
            else:
                parts = self._serve(view[position + _SIZE_BYTES : frame_end])
            position = frame_end
            if self.closed:
                return end
            if parts:
                pieces = held(parts)
                if slots:
                    slots.append(Slot(self, 0, pieces))
                else:
                    self._out += pieces
                    answers += 1
                    if answers >= at_once and end - position >= _SIZE_BYTES:
                        answers = 0
                        self._flush()
            elif self._is_held:
                position = int(frame_end - _SIZE_BYTES - size)
                break
            if (slots or self._unmute is not None) and self._must_wait():
                self._apply_pressure()
                break
        return position

    def _serve(self, frame: memoryview) -> list[Part] | None:
        try:
            return self._serve_frame(frame)
        except CloseConnection as order:
            self.close(str(order))
        except Exception:  # noqa: BLE001  # The supervisor of connections: one may fail, the rest serve on.
            self._fail()
        return None

    def _serve_run(self, view: memoryview) -> tuple[int, list[Part] | None] | None:
        """Serve the first requests in `view` together, where the service can."""
        serve_run, room = self.serve_run, self._limits.unanswered_requests_max - len(self._slots)
        # While it is muted or delayed nothing may be served past `_serve_frame`.
        if serve_run is None or room < _RUN_MAX or self._unmute is not None:
            return None
        try:
            return serve_run(view, _RUN_MAX)
        except Exception:  # noqa: BLE001  # As in `_serve`.
            self._fail()
        return len(view), None

    def _fail(self) -> None:
        _log.exception("a request from %s:%d failed unexpectedly", self.peer_host, self.peer_port)
        self.close("the broker failed to serve its request; the error is logged above")

    def _is_acceptable(self, head: bytes, size: int) -> bool:
        foreign = foreign_protocol(head)
        if foreign is not None:
            self._turn_away(foreign)
        elif 0 < size <= self._size_max:
            self._greeted = True
            return True
        else:
            self.close(explain_bad_size(size, self._size_max))
        return False

    def _turn_away(self, foreign: Foreign) -> None:
        if foreign.answer and not self._greeted:
            self._out.append(foreign.answer)
        self.close(f"the client sent {foreign.what}", foreign.name)

    def _keep(self, rest: memoryview) -> None:
        """Keep what was received and not served, past this turn."""
        self._tail = rest.tobytes()
        if len(rest) < _SIZE_BYTES or not self._reading:
            return
        (size,) = _SIZE.unpack_from(rest)
        if size + _SIZE_BYTES > len(self._shared) // 2:
            self._apply_pressure()
            self._awaits_budget = True
            if self._hub.budget.take(size + _SIZE_BYTES, self._start_large):
                self._start_large()

    def _start_large(self) -> None:
        """The budget allows it: receive the frame that begins in the tail into its own buffer."""
        self._awaits_budget = False
        (size,) = _SIZE.unpack_from(self._tail)
        if self.closed:
            self._hub.budget.give(size + _SIZE_BYTES)
            return
        self._large = self._hub.budget.buffer(size + _SIZE_BYTES)
        self._large[: len(self._tail)] = self._tail
        self._large_filled = len(self._tail)
        self._tail = b""
        self._relieve()

    def _fill_large(self, count: int) -> None:
        self._large_filled += count
        if self._large_filled < len(self._large):
            return
        frame = self._large
        self._serve_frames(frame, len(frame))
        if not self._is_held:
            self._drop_large()

    def _drop_large(self) -> None:
        if self._large_filled:
            large, self._large, self._large_filled = self._large, _NOTHING, 0
            self._hub.budget.give_buffer(large)

    # -- pressure

    def _must_wait(self) -> bool:
        return (
            self._is_held
            or self._unmute is not None
            or len(self._slots) >= self._limits.unanswered_requests_max
            or self._unanswered_bytes >= self._limits.unanswered_bytes_max
            or self.output.blocked
        )

    def _apply_pressure(self) -> None:
        if self._reading and not self._transport.is_closing():
            self._reading = False
            self._transport.pause_reading()

    def _relieve(self) -> None:
        """Read again where nothing speaks against it; requests held back are served first."""
        if self._reading or self._awaits_budget or self.closed or self._must_wait():
            return
        self._reading = True
        if self._tail:
            held = memoryview(bytearray(self._tail))
            self._in_turn = True
            consumed = self._serve_frames(held, len(held))
            self._tail = b""
            if consumed < len(held):
                self._keep(held[consumed:])
            self._in_turn = False
            self._flush_soon()
        if self._reading and not self.closed:
            self._transport.resume_reading()

    def _on_delayed(self, serve: Serve) -> None:
        self._unmute = None
        self._serve_frame = serve
        self.release()

    def _on_unmute(self) -> None:
        self._unmute = None
        self._muted_until_s = 0.0
        self._relieve()

    def _flush_soon(self) -> None:
        if self._out and not self._flush_scheduled:
            self._flush_scheduled = True
            self._loop.call_soon(self._flush_later)

    def _flush_later(self) -> None:
        self._flush_scheduled = False
        if self._out and not self.closed:
            self._flush()
        self._relieve()

    def _flush(self) -> None:
        out = self._out
        self._out = []
        if self.closed:
            return
        self.output.send(out)
        if self.output.blocked:
            self._apply_pressure()
