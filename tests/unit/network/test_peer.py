"""A connection to another broker, with a transport that only remembers."""

import asyncio
import struct

import pytest

from ottla.base.errors import ErrorCode, OttlaError
from ottla.network.peer import PeerConnection
from ottla.testing.simulation.virtual.loop import VirtualLoop
from ottla.wire.frames import decode_request_header, encode_response
from ottla.wire.messages.between_brokers import StopReplicaRequest, StopReplicaResponse
from ottla.wire.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)

STOP_REPLICA, FETCH = 5, 1


class FakeTransport(asyncio.Transport):
    """Remembers what is written."""

    def __init__(self):
        super().__init__()
        self.written = b""
        self.unsent_bytes = 0
        self.aborted = False

    def writelines(self, parts):
        self.written += b"".join(parts)

    def get_write_buffer_size(self):
        return self.unsent_bytes

    def abort(self):
        self.aborted = True


class World:
    """A connection that is made, what it wrote, and what it was told."""

    def __init__(self):
        self.lost = []
        self.answers = []
        self.connection = PeerConnection(
            "broker 2", "broker-1", response_bytes_max=1 << 24, on_lost=self.lost.append
        )
        self.transport = FakeTransport()
        self.connection.connection_made(self.transport)

    def send(self, message=None, timeout_ms=1000):
        message = message or StopReplicaRequest()
        self.connection.send(message, self.answers.append, timeout_ms=timeout_ms)

    def receive(self, data, piece_bytes=1 << 16):
        """Bytes arrive, at most so many at once."""
        data = memoryview(data)
        while data:
            room = self.connection.get_buffer(-1)
            count = min(len(room), len(data), piece_bytes)
            room[:count] = data[:count]
            self.connection.buffer_updated(count)
            data = data[count:]

    @property
    def codes(self):
        return [answer.code for answer in self.answers if isinstance(answer, OttlaError)]


def run(scenario):
    """On a loop whose time passes by itself."""
    loop = VirtualLoop()
    try:
        loop.run_until_complete(scenario())
    finally:
        loop.close()


def answer(correlation_id, code=0):
    response = StopReplicaResponse(error_code=code)
    return b"".join(encode_response(response, STOP_REPLICA, 4, correlation_id))


def fetched(correlation_id, records):
    response = FetchResponse(
        responses=[FetchableTopicResponse(partitions=[PartitionData(records=records)])]
    )
    return b"".join(encode_response(response, FETCH, 18, correlation_id))


def records_of(response):
    return response.responses[0].partitions[0].records


def test_requests_are_numbered_and_of_the_highest_version():
    """What leaves are whole requests, in order."""

    async def scenario():
        world = World()
        world.send()
        world.send()
        headers = []
        written = world.transport.written
        while written:
            (size,) = struct.unpack_from(">i", written)
            headers.append(decode_request_header(written[4 : 4 + size])[0])
            written = written[4 + size :]
        assert headers == [(5, 4, 0, "broker-1"), (5, 4, 1, "broker-1")]

    run(scenario)


@pytest.mark.parametrize("piece_bytes", [1, 3, 7, 1 << 16])
def test_answers_come_in_order_however_their_bytes_arrive(piece_bytes):
    """Each request gets its own answer, from pieces of any size."""

    async def scenario():
        world = World()
        for _ in range(5):
            world.send()
        stream = b"".join(answer(number, code=number) for number in range(5))
        world.receive(stream, piece_bytes)
        assert [each.error_code for each in world.answers] == [0, 1, 2, 3, 4]
        assert world.connection.in_flight == 0

    run(scenario)


def test_a_large_answer_is_received_into_the_buffer_its_records_are_read_from():
    """Once its size is known, no byte of it is copied again."""

    async def scenario():
        world = World()
        records = bytes(range(256)) * 4096
        world.send(FetchRequest())
        world.send(FetchRequest())
        stream = fetched(0, records) + fetched(1, b"next")
        world.receive(stream[: 1 << 16])
        receiving = world.connection.get_buffer(-1).obj
        world.receive(stream[1 << 16 :])
        large, small = world.answers
        assert records_of(large) == records
        assert records_of(large).obj is receiving
        assert records_of(small) == b"next"

    run(scenario)


def test_records_stay_what_they_are_while_more_arrives():
    """A small answer's records do not lie in the buffer that is received into."""

    async def scenario():
        world = World()
        for number in range(3):
            world.send(FetchRequest())
            world.receive(fetched(number, b"%d" % number * 1000))
        assert [bytes(records_of(each)) for each in world.answers] == [
            b"0" * 1000,
            b"1" * 1000,
            b"2" * 1000,
        ]

    run(scenario)


@pytest.mark.parametrize(
    "nonsense",
    [
        b"HTTP/1.1 400 Bad Request\r\n",
        struct.pack(">i", -1),
        struct.pack(">i", 1 << 25),
        answer(1),
        struct.pack(">ii", 4, 0),
    ],
    ids=["HTTP", "negative", "too large", "another's", "cut off"],
)
def test_nonsense_ends_the_connection(nonsense):
    """Whoever waits is told why, and the loss is reported once, after them."""

    async def scenario():
        world = World()
        told_before = []
        world.connection.on_lost = lambda error: told_before.append((list(world.answers), error))
        world.send()
        world.send()
        world.receive(nonsense)
        assert world.codes == [ErrorCode.NETWORK_EXCEPTION] * 2
        assert world.transport.aborted
        world.connection.connection_lost(None)
        assert [len(answers) for answers, _ in told_before] == [2]

    run(scenario)


def test_an_answer_nobody_asked_for_ends_the_connection():
    """It could only be taken for the answer to the next request."""

    async def scenario():
        world = World()
        world.receive(answer(0))
        assert world.connection.is_closed
        assert [error.code for error in world.lost] == [ErrorCode.NETWORK_EXCEPTION]

    run(scenario)


def test_the_end_of_the_connection_is_told_at_once():
    """A reset reaches whoever waits, and whoever watches the broker."""

    async def scenario():
        world = World()
        world.send()
        world.connection.connection_lost(ConnectionResetError("reset by peer"))
        assert world.codes == [ErrorCode.NETWORK_EXCEPTION]
        assert "reset by peer" in world.lost[0].message
        with pytest.raises(OttlaError):
            world.send()

    run(scenario)


def test_closing_is_no_loss():
    """Who waits is told; who watches for lost brokers is not."""

    async def scenario():
        world = World()
        world.send()
        world.connection.close()
        world.connection.connection_lost(None)
        assert world.codes == [ErrorCode.NETWORK_EXCEPTION]
        assert world.transport.aborted
        assert world.lost == []

    run(scenario)


def test_an_answer_that_does_not_come_in_time_ends_the_connection():
    """At the earliest deadline, also where a later one was set first."""

    async def scenario():
        world = World()
        loop = asyncio.get_running_loop()
        ended = loop.create_future()
        world.connection.on_lost = lambda error: ended.set_result((loop.time(), error.code))
        world.send(timeout_ms=60_000)
        world.send(timeout_ms=2_000)
        assert await ended == (2.0, ErrorCode.REQUEST_TIMED_OUT)
        assert world.codes == [ErrorCode.REQUEST_TIMED_OUT] * 2

    run(scenario)


def test_a_deadline_passes_over_what_is_answered():
    """The connection lives on as long as each answer is in time."""

    async def scenario():
        world = World()
        world.send(timeout_ms=1_000)
        await asyncio.sleep(0.9)
        world.receive(answer(0))
        world.send(timeout_ms=1_000)
        await asyncio.sleep(0.9)
        world.receive(answer(1))
        await asyncio.sleep(5)
        assert world.connection.is_open
        assert world.codes == []

    run(scenario)


def test_a_broker_that_does_not_read_is_sent_no_more():
    """Our memory is not its buffer."""

    async def scenario():
        world = World()
        world.transport.unsent_bytes = (64 << 20) + 1
        with pytest.raises(OttlaError):
            world.send()
        assert world.connection.in_flight == 0
        assert world.connection.is_open

    run(scenario)


def test_a_request_is_awaited():
    """`request` returns the response, and raises what ended the connection."""

    async def scenario():
        world = World()
        loop = asyncio.get_running_loop()
        loop.call_later(1, world.receive, answer(0, code=7))
        loop.call_later(2, world.connection.connection_lost, None)
        response = await world.connection.request(StopReplicaRequest(), timeout_ms=10_000)
        assert response.error_code == 7
        with pytest.raises(OttlaError) as caught:
            await world.connection.request(StopReplicaRequest(), timeout_ms=10_000)
        assert caught.value.code == ErrorCode.NETWORK_EXCEPTION

    run(scenario)


def test_an_answer_to_who_gave_up_is_dropped():
    """The answers behind it still find their requests."""

    async def scenario():
        world = World()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1):
                await world.connection.request(StopReplicaRequest(), timeout_ms=10_000)
        world.send()
        world.receive(answer(0) + answer(1, code=3))
        assert [each.error_code for each in world.answers] == [3]

    run(scenario)


def test_what_an_answer_does_to_the_connection_holds_for_the_next():
    """A connection closed while answers are taken in takes in no more."""

    async def scenario():
        world = World()
        world.connection.send(
            StopReplicaRequest(), lambda _: world.connection.close(), timeout_ms=1000
        )
        world.send()
        world.receive(answer(0) + answer(1))
        assert world.codes == [ErrorCode.NETWORK_EXCEPTION]

    run(scenario)
