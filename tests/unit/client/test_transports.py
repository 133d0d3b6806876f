"""One contract of all transports: the client's connection, a broker's, the blocking one."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from ottla.base.errors import ErrorCode, OttlaError
from ottla.client.connection.blocking_connection import BlockingConnection
from ottla.client.connection.connection import AgreedVersions, Connection
from ottla.client.connection.view import Address
from ottla.network.peer import PeerConnection
from ottla.testing.simulation.virtual.loop import run_virtual
from ottla.wire.api import ApiKey
from ottla.wire.frames import decode_request_header, encode_response
from ottla.wire.messages.api_versions import ApiVersion, ApiVersionsResponse
from ottla.wire.messages.between_brokers import StopReplicaRequest, StopReplicaResponse

KNOWN = ApiVersion(api_key=ApiKey.STOP_REPLICA, min_version=0, max_version=4)
ADDRESS = Address("broker-2", 9092)
NONE, TIMED_OUT, BROKEN = 0, ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NETWORK_EXCEPTION
# The error code of the answer, or that of the failure, and after how many seconds it came.
Outcome = tuple[float, int]
# After so many seconds these bytes arrive, or this ends the connection (None: an orderly end).
# The requests' correlation ids count from 1.
Script = Sequence[tuple[float, "bytes | Exception | None"]]


class Played:
    """What became of the requests, and then of one more."""

    def __init__(self, outcomes: list[Outcome], why: str, refusal: OttlaError | None) -> None:
        self.outcomes = outcomes
        # Of the last request.
        self.why = why
        self.refusal = refusal


Play = Callable[[Sequence[float], Script], Played]


def framed(correlation_id: int, code: int = 0) -> bytes:
    response = StopReplicaResponse(error_code=code)
    return joined(encode_response(response, ApiKey.STOP_REPLICA, 4, correlation_id))


def joined(parts: list[Any]) -> bytes:
    return b"".join(parts)


# -- the two on a loop


class Transport(asyncio.Transport):
    """Takes what is written, and gives what is to be received."""

    def writelines(self, parts: Any) -> None:
        joined(list(parts))

    def get_write_buffer_size(self) -> int:
        return 0

    def abort(self) -> None:
        pass


def _arrive(protocol: asyncio.BufferedProtocol, event: "bytes | Exception | None") -> None:
    if not isinstance(event, bytes):
        protocol.connection_lost(event)
        return
    left = memoryview(event)
    while left:
        room = protocol.get_buffer(-1)
        count = min(len(room), len(left))
        room[:count] = left[:count]  # type: ignore[index]
        protocol.buffer_updated(count)
        left = left[count:]


def _play_on_loop(
    connection: Any, submit: Callable[[float], "asyncio.Future[Any]"], timeouts: Any, script: Script
) -> Any:
    async def played() -> Played:
        loop = asyncio.get_running_loop()
        # As the blocking one's first request, which asks for versions.
        first = submit(60)
        _arrive(connection, framed(0))
        await first
        begin_s = loop.time()
        times: list[float] = []
        answers = [submit(timeout_s) for timeout_s in timeouts]
        for each in answers:
            each.add_done_callback(lambda _: times.append(round(loop.time() - begin_s, 3)))
        for at_s, event in script:
            loop.call_at(begin_s + at_s, _arrive, connection, event)
        told = await asyncio.gather(*answers, return_exceptions=True)
        return _played(told, times, lambda: submit(1.0))

    return played()


def _played(told: Sequence[Any], times: Sequence[float], once_more: Callable[[], object]) -> Played:
    codes = [each.code if isinstance(each, OttlaError) else each.error_code for each in told]
    last = told[-1]
    refusal = None
    try:
        once_more()
    except OttlaError as error:
        refusal = error
    return Played(
        list(zip(times, codes, strict=True)),
        last.message if isinstance(last, OttlaError) else "",
        refusal,
    )


def play_client(timeouts: Sequence[float], script: Script) -> Played:
    async def scenario() -> Played:
        connection = Connection(ADDRESS, "tester")
        connection.versions = AgreedVersions([KNOWN])
        connection.connection_made(Transport())

        def submit(timeout_s: float) -> "asyncio.Future[Any]":
            return connection.submit(StopReplicaRequest(), timeout_s)

        played: Played = await _play_on_loop(connection, submit, timeouts, script)
        return played

    return run_virtual(scenario())


def play_peer(timeouts: Sequence[float], script: Script) -> Played:
    async def scenario() -> Played:
        loop = asyncio.get_running_loop()
        connection = PeerConnection("broker-2:9092", "tester")
        connection.connection_made(Transport())

        def submit(timeout_s: float) -> "asyncio.Future[Any]":
            answer = loop.create_future()

            def on_answer(given: Any) -> None:
                if isinstance(given, OttlaError):
                    answer.set_exception(given)
                else:
                    answer.set_result(given)

            connection.send(StopReplicaRequest(), on_answer, timeout_ms=round(timeout_s * 1000))
            return answer

        played: Played = await _play_on_loop(connection, submit, timeouts, script)
        return played

    return run_virtual(scenario())


# -- the blocking one


class ScriptedSocket:
    """A socket in a time of its own: it passes while a call waits."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.script: list[tuple[float, bytes | Exception | None]] = []
        self._timeout_s = 0.0
        self._arrived = b""

    def setsockopt(self, *_: object) -> None:
        pass

    def close(self) -> None:
        pass

    def settimeout(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s

    def sendall(self, data: bytes) -> None:
        header = decode_request_header(data[4:])[0]
        if header.api_key == ApiKey.API_VERSIONS:
            response = ApiVersionsResponse(api_keys=[KNOWN])
            self._arrived += joined(
                encode_response(response, 18, header.api_version, header.correlation_id)
            )

    def recv_into(self, room: memoryview) -> int:
        if not self._arrived:
            until_s = self.now_s + self._timeout_s
            if not self.script or self.script[0][0] > until_s:
                self.now_s = until_s
                raise TimeoutError
            self.now_s, event = self.script.pop(0)
            if isinstance(event, Exception):
                raise event
            self._arrived = event or b""
        count = min(len(room), len(self._arrived))
        room[:count] = self._arrived[:count]
        self._arrived = self._arrived[count:]
        return count


def play_blocking(timeouts: Sequence[float], script: Script) -> Played:
    socket = ScriptedSocket()
    connection = BlockingConnection(
        ADDRESS,
        "tester",
        60.0,
        connect=lambda *_: socket,  # type: ignore[arg-type,return-value]
        now_s=lambda: socket.now_s,
    )
    socket.script = list(script)
    for timeout_s in timeouts:
        connection.send(StopReplicaRequest(), timeout_s)
    told: list[Any] = []
    times = []
    for _ in timeouts:
        try:
            told.append(connection.receive())
        except OttlaError as error:
            told.append(error)
        # Up to a hundredth of a second late.
        times.append(round(socket.now_s, 1))
    return _played(told, times, lambda: connection.send(StopReplicaRequest()))


@pytest.fixture(params=[play_client, play_peer, play_blocking], ids=["client", "peer", "blocking"])
def play(request: pytest.FixtureRequest) -> Play:
    chosen: Play = request.param
    return chosen


# -- the laws


def test_each_request_gets_its_answer(play: Play) -> None:
    """In order, whatever pieces the bytes arrive in, and the connection goes on."""
    stream = framed(1, 1) + framed(2, 2) + framed(3, 3)
    played = play([9, 9, 9], [(1, stream[:5]), (2, stream[5:30]), (3, stream[30:])])
    assert [code for _, code in played.outcomes] == [1, 2, 3]
    assert played.outcomes[-1] == (3, 3)
    assert played.refusal is None


def test_an_early_deadline_behind_a_late_one_holds(play: Play) -> None:
    """It ends the connection in its own time, and all that were behind fail with it."""
    played = play([3, 0.3], [])
    assert played.outcomes == [(0.3, TIMED_OUT), (0.3, TIMED_OUT)]
    assert "did not answer STOP_REPLICA in time" in played.why
    assert played.refusal is not None


def test_an_early_deadline_is_not_held_up_by_an_answer(play: Play) -> None:
    """The answer in front of it was in time and is given."""
    played = play([5, 1], [(0.9, framed(1, 4))])
    assert played.outcomes == [(0.9, 4), (1, TIMED_OUT)]


def test_the_deadline_of_what_is_answered_is_over(play: Play) -> None:
    """A connection lives on as long as each answer is in time."""
    played = play([1, 5], [(0.9, framed(1)), (4.9, framed(2))])
    assert played.outcomes == [(0.9, NONE), (4.9, NONE)]
    assert played.refusal is None


@pytest.mark.parametrize(
    ("nonsense", "why"),
    [
        (framed(3), "was due"),
        (b"\0\0\0\4\0\0\0\2", "cannot be read"),
        (b"HTTP/1.1 400 Bad Request\r\n", "speaks HTTP bytes"),
    ],
    ids=["another's answer", "cut off", "HTTP"],
)
def test_nonsense_ends_the_connection(play: Play, nonsense: bytes, why: str) -> None:
    """What was answered before it is good; all later requests fail with the reason."""
    played = play([9, 9, 9], [(1, framed(1, 6)), (2, nonsense)])
    assert played.outcomes == [(1, 6), (2, BROKEN), (2, BROKEN)]
    assert "broker-2:9092" in played.why
    assert why in played.why
    assert played.refusal is not None
    assert why in played.refusal.message


def test_an_answer_to_no_request_ends_the_connection(play: Play) -> None:
    """It would be taken for the answer to the next request."""
    played = play([9], [(1, framed(1) + framed(2))])
    assert played.outcomes == [(1, NONE)]
    assert played.refusal is not None
    assert "sent an answer to no request" in played.refusal.message


@pytest.mark.parametrize(
    ("end", "why"),
    [(None, "closed the connection"), (ConnectionResetError("reset by peer"), "reset by peer")],
    ids=["orderly", "reset"],
)
def test_the_end_of_the_connection_fails_what_is_in_flight(
    play: Play, end: Exception | None, why: str
) -> None:
    """At once, also in the middle of an answer."""
    played = play([9, 9], [(1, framed(1)[:6]), (2, end)])
    assert played.outcomes == [(2, BROKEN), (2, BROKEN)]
    assert why in played.why
    assert played.refusal is not None


def test_work_between_two_answers_is_no_waiting() -> None:
    """A blocking task may take its time: what it asked for ahead lies in the socket meanwhile."""
    socket = ScriptedSocket()
    connection = BlockingConnection(
        ADDRESS,
        "tester",
        30.0,
        connect=lambda *_: socket,  # type: ignore[arg-type,return-value]
        now_s=lambda: socket.now_s,
    )
    socket.script = [(1.0, framed(1, 1))]
    connection.send(StopReplicaRequest())
    connection.send(StopReplicaRequest())
    assert connection.receive().error_code == 1
    socket.now_s += 3600
    socket.script = [(socket.now_s, framed(2, 2))]
    assert connection.receive().error_code == 2


def test_an_answer_for_a_cancelled_future_is_dropped() -> None:
    """The answers behind it still find their requests."""

    async def scenario() -> int:
        connection = Connection(ADDRESS, "tester")
        connection.versions = AgreedVersions([KNOWN])
        connection.connection_made(Transport())
        given_up = connection.submit(StopReplicaRequest(), 10)
        waiting = connection.submit(StopReplicaRequest(), 10)
        given_up.cancel()
        _arrive(connection, framed(0, 1) + framed(1, 2))
        answer: StopReplicaResponse = await waiting
        return answer.error_code

    assert run_virtual(scenario()) == 2


def test_closing_fails_what_is_in_flight_with_the_reason_given() -> None:
    """A client that is closed says so to those who wait."""

    async def scenario() -> str:
        connection = Connection(ADDRESS, "tester")
        connection.versions = AgreedVersions([KNOWN])
        connection.connection_made(Transport())
        waiting = connection.submit(StopReplicaRequest(), 10)
        connection.close()
        with pytest.raises(OttlaError) as caught:
            await waiting
        return caught.value.message

    assert "this side closed the connection" in run_virtual(scenario())
