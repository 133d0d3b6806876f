"""The requests and answers of one connection, on the side that sends the requests. Does no I/O.

`send` returns the bytes of a request, `receive` the answers in the received bytes, and
`next_deadline_s` the time at which to call `time_passed`. Answers arrive in the order of the
requests. An answer with an unexpected correlation id, or an unreadable one, ends the connection,
because a later answer could be matched to the wrong request. The first missed deadline also ends
it, since all later answers would be late, too. A failed connection stays failed.

The client's connection, a broker's connection to another one and the blocking connection are
shells over this class: they move bytes, set timers, and pass each outcome to the waiter of its
request.
"""

from collections import deque
from math import inf
from struct import Struct
from typing import Any, Final, Generic, NamedTuple, TypeVar

from ottla.base.errors import ErrorCode
from ottla.network.frame_cutter import FrameCutter
from ottla.wire.api import ApiKey, key_name
from ottla.wire.errors import WireError
from ottla.wire.frames import decode_response, encode_request
from ottla.wire.notation import Message
from ottla.wire.parts import Part

# The shell's own object for a request: a future, a callback, or None.
Waiter = TypeVar("Waiter")

# No Kafka answer is larger: such a size means that the bytes are of another protocol.
RESPONSE_BYTES_MAX: Final = 1 << 30

_CODE: Final = Struct(">h")
_CORRELATION_ID_MAX: Final = 0x7FFFFFFF
# The first byte of TLS alert and handshake records.
_TLS: Final = b"\x15\x16"
_GIVE_SETTINGS: Final = (
    "give the client its settings with security.protocol={}: commands take"
    " `--config client.properties`, programs and commands OTTLA_CONFIG"
)


class Failure(NamedTuple):
    """The reason why a connection ended: REQUEST_TIMED_OUT or NETWORK_EXCEPTION, and a sentence."""

    code: ErrorCode
    message: str


class _Sent(NamedTuple, Generic[Waiter]):
    """A request that is not answered yet."""

    correlation_id: int
    key: int
    version: int
    deadline_s: float
    waiter: Waiter


class Exchange(Generic[Waiter]):
    """The state of one connection. `name` is the name of the other side in messages to users.

    Times are in seconds of any clock, the same one for all calls. Invariant: after a failure
    nothing is sent, and no more answers are read.
    """

    __slots__ = (
        "_answers",
        "_client_id",
        "_cutter",
        "_name",
        "_next_correlation_id",
        "_protocol",
        "_sent",
        "failure",
        "next_deadline_s",
    )

    def __init__(
        self,
        name: str,
        client_id: str,
        *,
        response_bytes_max: int = RESPONSE_BYTES_MAX,
        protocol: str = "",
    ) -> None:
        """Create the exchange.

        `protocol` is the `security.protocol` of a client; messages about failures mention it.
        """
        self.failure: Failure | None = None
        # Invariant: no request in flight has an earlier deadline. The request with this deadline
        # may have been answered already; then `time_passed` finds the next one. `inf` means that
        # there is none.
        self.next_deadline_s = inf
        self._name = name
        self._client_id = client_id
        self._protocol = protocol
        self._next_correlation_id = 0
        self._sent: deque[_Sent[Waiter]] = deque()
        self._answers: deque[tuple[Waiter, Any]] = deque()
        self._cutter = FrameCutter(response_bytes_max, self._on_frame, self._on_bad_size)

    @property
    def in_flight(self) -> int:
        """Return the number of requests not answered yet."""
        return len(self._sent)

    def last_deadline_s(self, now_s: float) -> float:
        """Return the latest deadline of the requests in flight; `now_s` if there are none."""
        return max((sent.deadline_s for sent in self._sent), default=now_s)

    # -- sending

    # Hot: once per request.
    def send(self, message: Message, version: int, deadline_s: float, waiter: Waiter) -> list[Part]:
        """Return the bytes of a request; the connection fails if it is unanswered at `deadline_s`.

        `waiter` is returned with the answer, or by `take_unanswered`. Raises VersionError.
        """
        assert self.failure is None, self.failure
        correlation_id = self._next_correlation_id
        parts = encode_request(message, version, correlation_id, self._client_id)
        self._next_correlation_id = (correlation_id + 1) & _CORRELATION_ID_MAX
        self._sent.append(_Sent(correlation_id, message.__api_key__, version, deadline_s, waiter))
        if deadline_s < self.next_deadline_s:
            self.next_deadline_s = deadline_s
        return parts

    def send_unanswered(self, message: Message, version: int) -> list[Part]:
        """Return the bytes of a request that gets no answer (Produce with acks 0)."""
        assert self.failure is None, self.failure
        correlation_id = self._next_correlation_id
        self._next_correlation_id = (correlation_id + 1) & _CORRELATION_ID_MAX
        return encode_request(message, version, correlation_id, self._client_id)

    # -- receiving

    def get_buffer(self) -> memoryview:
        """Return the buffer for the next receive."""
        return self._cutter.get_buffer()

    def receive(self, count: int) -> deque[tuple[Waiter, Any]]:
        """Process `count` more received bytes; return the complete answers.

        Each answer is a pair of waiter and response; the caller removes them from the left of the
        queue. An answer that was not removed stays queued. If the shell closes the connection
        first, its waiter is among the unanswered ones. May set `failure`: the answers before the
        failure are still valid.
        """
        self._cutter.buffer_updated(count)
        return self._answers

    def _on_frame(self, frame: memoryview) -> None:
        if not self._sent:
            self._break("sent an answer to no request")
            return
        first = self._sent[0]
        key, version = first.key, first.version
        if key == ApiKey.API_VERSIONS and len(frame) >= 6:
            # An unknown version of ApiVersions is answered in version 0 (KIP-511).
            (code,) = _CODE.unpack_from(frame, 4)
            version = 0 if code == ErrorCode.UNSUPPORTED_VERSION else version
        try:
            correlation_id, message = decode_response(key, version, frame)
        except WireError as error:
            self._break(f"sent a {key_name(key)} answer that cannot be read: {error}")
            return
        if correlation_id != first.correlation_id:
            self._break(
                f"answered request {correlation_id} where the answer to request"
                f" {first.correlation_id} ({key_name(key)}) was due"
            )
            return
        self._sent.popleft()
        self._answers.append((first.waiter, message))

    def _on_bad_size(self, size: int, seen: bytes) -> None:
        what = "HTTP" if seen.startswith(b"HTTP") else "TLS" if seen[:1] in _TLS else "other"
        remedy = "check the port, and whether that listener wants TLS"
        if what == "TLS" and self._protocol:
            remedy = _GIVE_SETTINGS.format("SSL or SASL_SSL")
        self.fail(
            ErrorCode.NETWORK_EXCEPTION,
            f"speaks {what} bytes ({seen!r}, an answer of {size} bytes), not the Kafka protocol;"
            f" {remedy}",
        )

    # -- ending

    def time_passed(self, now_s: float) -> None:
        """Fail if a request in flight is overdue; otherwise set the exact `next_deadline_s`."""
        first = min(self._sent, key=lambda sent: sent.deadline_s, default=None)
        self.next_deadline_s = inf if first is None else first.deadline_s
        if first is not None and first.deadline_s <= now_s:
            self.fail(
                ErrorCode.REQUEST_TIMED_OUT,
                f"did not answer {key_name(first.key)} in time; the broker is overloaded, stopped,"
                " or behind a network that drops packets",
            )

    def lost(self, error: Exception | None) -> None:
        """Fail, because the transport has reported the end of the connection."""
        reason = f" ({error})" if error else ""
        what = "the broker stopped, or it refused what it was sent (its log says why)"
        first = self._sent[0].correlation_id if self._protocol and self._sent else -1
        if first == 0 and not self._protocol.endswith("SSL"):
            reason = f" without an answer{reason}"
            what = _reminder("if the port is one of TLS", "SSL or SASL_SSL")
        elif first == 1 and not self._protocol.startswith("SASL"):
            # Only ApiVersions was answered, which needs no login; this request may have needed one.
            what = _reminder("if clients must log in there", f"SASL_{self._protocol}")
        self.fail(ErrorCode.NETWORK_EXCEPTION, f"closed the connection{reason}; {what}")

    def closed(self) -> None:
        """Fail, because the shell itself closes the connection."""
        self.fail(
            ErrorCode.NETWORK_EXCEPTION, "did not answer before this side closed the connection"
        )

    def fail(self, code: ErrorCode, what: str) -> None:
        """Fail because of the other side. `what` continues a sentence that begins with `name`.

        Only the first failure is kept.
        """
        if self.failure is None:
            self.failure = Failure(code, f"{self._name} {what}")
            self._cutter.stop()

    def take_unanswered(self) -> list[Waiter]:
        """Remove and return the waiters of unanswered requests, in order.

        The caller must pass the failure to each of them.
        """
        assert self.failure is not None
        waiters = [waiter for waiter, _ in self._answers] + [sent.waiter for sent in self._sent]
        self._answers.clear()
        self._sent.clear()
        return waiters

    def _break(self, what: str) -> None:
        remedy = "is the port another program's, or do the two ends run different releases?"
        self.fail(ErrorCode.NETWORK_EXCEPTION, f"{what}; {remedy}")


def _reminder(condition: str, protocol: str) -> str:
    settings = _GIVE_SETTINGS.format(protocol)
    return f"{condition}, {settings}; else the broker's log says why"
