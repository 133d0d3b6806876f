"""Framing, order of answers and pressure, with a transport that only remembers."""

import asyncio
import os
import struct

import pytest

from ottla.network.connection import Connection
from ottla.network.listener import Listener
from ottla.network.memory_budget import MemoryBudget
from ottla.network.output import CHUNK_BYTES
from ottla.network.refusals import Refusals
from ottla.network.service import CloseConnection, ConnectionLimits
from ottla.quota.client_quotas import ClientQuotas, Windows
from ottla.quota.connections import ConnectionQuotas, ConnectionRules
from ottla.wire.parts import FileRegion


class FakeTransport(asyncio.Transport):
    """Remembers what is written; reading is a flag."""

    def __init__(self):
        super().__init__({"peername": ("10.0.0.9", 4711), "sockname": ("10.0.0.1", 9092)})
        self.writes = []
        self.reading = True
        self.aborted = False

    def write(self, data):
        self.writes.append(bytes(data))

    def pause_reading(self):
        self.reading = False

    def resume_reading(self):
        self.reading = True

    def is_closing(self):
        return self.aborted

    def abort(self):
        self.aborted = True

    def close(self):
        self.aborted = True


class FakeLoop:
    """Runs what was scheduled when `run` is called."""

    def __init__(self):
        self.ready = []
        self.later = []

    def call_soon(self, callback, *arguments):
        self.ready.append((callback, arguments))

    def call_later(self, delay_s, callback, *arguments):
        self.later.append((delay_s, callback, arguments))

    def run_later(self):
        """What was scheduled for later, not what that schedules."""
        later, self.later = self.later, []
        for _, callback, arguments in later:
            callback(*arguments)

    def run(self):
        while self.ready:
            callback, arguments = self.ready.pop(0)
            callback(*arguments)


class Echo:
    """Answers with the request, upper-cased; `later…` requests wait; `silent…` get no answer."""

    def __init__(self):
        self.seen = []
        self.slots = []

    def attach(self, connection):
        return lambda frame: self.serve(connection, frame)

    def serve(self, connection, frame):
        request = bytes(frame)
        self.seen.append(request)
        if request.startswith(b"later"):
            self.slots.append(connection.defer(len(request)))
            return None
        if request.startswith(b"silent"):
            return None
        if request.startswith(b"close"):
            raise CloseConnection(f"it asked to {request!r}", "wish")
        if request.startswith(b"crash"):
            raise ZeroDivisionError
        return [b"<", request.upper(), b">"]


class Hub:
    def __init__(self, service, limits, budget_bytes=1 << 20, buffer_bytes=4096):
        self.service = service
        self.limits = limits
        self.budget = MemoryBudget(budget_bytes)
        self.receive_buffer = memoryview(bytearray(buffer_bytes))
        self.send_buffer = memoryview(bytearray(CHUNK_BYTES))
        self.closed = []
        self.now_s = 0.0
        self.refusals = Refusals(lambda: self.now_s)

    def on_opened(self, connection):
        return None

    def on_closed(self, connection):
        self.closed.append(connection)


class Rig:
    """A connection between a fake transport and an echoing service."""

    def __init__(self, *, hub=None, budget_bytes=1 << 20, **limits):
        self.service = hub.service if hub else Echo()
        self.loop = FakeLoop()
        self.hub = hub or Hub(self.service, ConnectionLimits(**limits), budget_bytes)
        self.transport = FakeTransport()
        self.connection = Connection(self.hub, self.loop)
        self.connection.connection_made(self.transport)

    def receive(self, data):
        """Bring `data` in as many receives as the buffers ask for, while the reading is on."""
        while data and self.transport.reading and not self.transport.aborted:
            buffer = self.connection.get_buffer(-1)
            count = min(len(buffer), len(data))
            buffer[:count] = data[:count]
            self.connection.buffer_updated(count)
            data = data[count:]
        return data

    @property
    def written(self):
        return b"".join(self.transport.writes)


def frame(body):
    return struct.pack(">i", len(body)) + body


def test_requests_of_one_receive_are_served_together_and_answered_two_by_two():
    """Few writes, and yet a client with five in flight goes on before the last is served (P3)."""
    rig = Rig()
    rig.receive(frame(b"one") + frame(b"two"))
    rig.receive(b"".join(frame(name) for name in (b"a", b"b", b"c", b"d", b"e")))
    assert rig.transport.writes == [b"<ONE><TWO>", b"<A><B>", b"<C><D>", b"<E>"]


class Together(Echo):
    """Serves small letters together where it can, and all else one by one."""

    def __init__(self):
        super().__init__()
        self.runs = []

    def attach(self, connection):
        connection.serve_run = self.serve_run
        return super().attach(connection)

    def serve_run(self, received, count_max):
        position, run = 0, []
        while len(run) < count_max and received[position + 4 : position + 5].tobytes().islower():
            (size,) = struct.unpack_from(">i", received, position)
            if position + 4 + size > len(received):
                break
            run.append(bytes(received[position + 4 : position + 4 + size]))
            position += 4 + size
        if b"crash" in run:
            raise ZeroDivisionError
        if len(run) < 2:
            return None
        self.runs.append(run)
        return position, [b"".join(b"<" + request.upper() + b">" for request in run)]


def together():
    """A rig whose service serves several requests at once."""
    rig = Rig()
    rig.service = rig.hub.service = Together()
    rig.connection = Connection(rig.hub, rig.loop)
    rig.connection.connection_made(rig.transport)
    return rig


def frames(names):
    return b"".join(frame(name.encode()) for name in names)


def test_several_requests_of_one_receive_may_be_served_at_once():
    """Up to three; what is alone, or of another kind, is served by itself, all in their order."""
    rig = together()
    rig.receive(frames("abcdeF") + frame(b"g")[:3])
    assert rig.service.runs == [[b"a", b"b", b"c"], [b"d", b"e"]]
    assert rig.service.seen == [b"F"]
    assert rig.transport.writes == [b"<A><B><C>", b"<D><E>", b"<F>"]
    rig.receive(frame(b"g")[3:])
    assert rig.service.seen == [b"F", b"g"]
    assert rig.written == b"<A><B><C><D><E><F><G>"


def test_answers_of_a_run_wait_for_those_before_them():
    """A request that waits holds back the answers behind it, not their serving."""
    rig = together()
    rig.receive(frame(b"later") + frame(b"B") + frames("cd"))
    assert rig.service.runs == [[b"c", b"d"]]
    assert rig.written == b""
    rig.service.slots[0].answer([b"<LATER>"])
    rig.loop.run()
    assert rig.written == b"<LATER><B><C><D>"


def test_a_run_that_fails_closes_only_its_connection():
    """As a single request does."""
    rig = together()
    rig.receive(frame(b"a") + frame(b"crash"))
    assert rig.connection.closed
    assert rig.service.seen == []
    assert rig.written == b""


def test_nothing_is_served_together_while_a_connection_is_delayed():
    """What comes is held, however much."""
    rig = together()
    rig.loop.time = lambda: 0.0
    rig.loop.call_later = lambda _delay_s, callback, *arguments: Timer(callback, arguments)
    rig.connection.delay(1000)
    timer = rig.connection._muting.timer
    rig.receive(frames("abc"))
    assert (rig.service.runs, rig.service.seen) == ([], [])
    timer.fire()
    rig.loop.run()
    assert rig.written == b"<A><B><C>"


def test_a_large_request_that_begins_while_the_connection_is_delayed_is_served_afterwards():
    """Its bytes are read on when the delay is over, and not never."""
    rig = Rig()
    timers = []

    def call_later(_delay_s, callback, *arguments):
        timers.append(Timer(callback, arguments))
        return timers[-1]

    rig.loop.time = lambda: 0.0
    rig.loop.call_later = call_later
    rig.connection.delay(1000)
    body = b"x" * 10_000
    rest = rig.receive(frame(body))
    assert rest
    assert not rig.transport.reading
    timers[0].fire()
    assert rig.transport.reading
    rig.receive(rest)
    assert rig.service.seen == [body]


class Timer:
    """A timer that fires when `fire` is called."""

    def __init__(self, callback, arguments):
        self.callback, self.arguments = callback, arguments

    def fire(self):
        self.callback(*self.arguments)

    def cancel(self):
        pass


@pytest.mark.parametrize("cut", range(1, 14))
def test_a_stream_cut_anywhere_gives_the_same_requests(cut):
    """Where TCP cuts the stream means nothing."""
    rig = Rig()
    stream = frame(b"one") + frame(b"three")
    rig.receive(stream[:cut])
    rig.receive(stream[cut:])
    assert rig.service.seen == [b"one", b"three"]


def test_a_request_larger_than_the_buffer_gets_a_buffer_of_its_own():
    """A frame of more than half the shared buffer is received in its own, then given back."""
    rig = Rig()
    body = b"x" * 10_000
    rig.receive(frame(body) + frame(b"next"))
    assert rig.service.seen == [body, b"next"]
    assert rig.hub.budget.held_bytes == 0


def test_answers_keep_the_order_of_requests():
    """A deferred answer holds back those behind it, whenever they are ready."""
    rig = Rig()
    rig.receive(frame(b"later 1") + frame(b"two") + frame(b"later 3") + frame(b"four"))
    assert rig.written == b""
    rig.service.slots[1].answer([b"(3)"])
    rig.loop.run()
    assert rig.written == b""
    rig.service.slots[0].answer([b"(1)"])
    rig.loop.run()
    assert rig.transport.writes == [b"(1)<TWO>(3)<FOUR>"]


def test_a_request_without_answer_leaves_no_trace():
    """acks=0: nothing is sent, and nothing waits for it."""
    rig = Rig()
    rig.receive(frame(b"silent") + frame(b"two"))
    assert rig.written == b"<TWO>"


def test_too_many_unanswered_requests_stop_the_reading():
    """Back-pressure: the connection is read again when answers have gone out."""
    rig = Rig(unanswered_requests_max=2)
    rig.receive(frame(b"later 1") + frame(b"later 2") + frame(b"three"))
    assert rig.service.seen == [b"later 1", b"later 2"]
    assert not rig.transport.reading
    rig.service.slots[0].answer([b"(1)"])
    rig.service.slots[1].answer([b"(2)"])
    rig.loop.run()
    assert rig.transport.reading
    assert rig.written == b"(1)(2)<THREE>"


def test_too_many_unanswered_bytes_stop_the_reading():
    """Back-pressure counts bytes, too."""
    rig = Rig(unanswered_bytes_max=100)
    rig.receive(frame(b"later" + b"x" * 200) + frame(b"two"))
    assert not rig.transport.reading
    assert len(rig.service.seen) == 1


def test_a_connection_of_a_broker_that_stops_is_answered_and_not_read():
    """Whatever else ends: of what came before, only the answers leave."""
    rig = Rig()
    rig.receive(frame(b"later"))
    rig.connection.stop_reading()
    rig.connection.stop_reading()
    assert not rig.transport.reading
    rig.connection.pause_writing()
    rig.connection.resume_writing()
    rig.service.slots[0].answer([b"(1)"])
    rig.loop.run()
    assert not rig.transport.reading
    assert rig.written == b"(1)"


def test_a_listener_that_stops_reads_on_only_from_those_it_is_told_of():
    """The other brokers: their fetches commit what is still to be answered."""
    addresses = ClientQuotas(Windows(), Windows())
    quotas = ConnectionQuotas(ConnectionRules(), addresses, Windows())
    listener = Listener("PLAINTEXT", Echo(), ConnectionLimits(), MemoryBudget(1), quotas)
    client, broker = Rig(), Rig()
    listener.connections = {client.connection: None, broker.connection: None}
    listener.stop_reading(lambda connection: connection is broker.connection)
    assert not client.transport.reading
    broker.receive(frame(b"fetch"))
    assert broker.written == b"<FETCH>"


def test_a_slow_reader_is_not_read():
    """While the socket takes no output, no more requests are taken either."""
    rig = Rig()
    rig.connection.pause_writing()
    assert not rig.transport.reading
    rig.connection.resume_writing()
    assert rig.transport.reading


def test_requests_behind_an_answer_that_the_socket_does_not_take_wait():
    """One receive of many fetches holds no descriptors for all of their answers."""
    rig = Rig()
    echo = rig.service.serve

    def serve(connection, request):
        connection.pause_writing()
        return echo(connection, request)

    rig.service.serve = serve
    rig.receive(frames("abcde"))
    assert rig.service.seen == [b"a"]
    rig.service.serve = echo
    rig.connection.resume_writing()
    rig.loop.run()
    assert rig.written == b"<A><B><C><D><E>"
    assert rig.transport.reading


def test_a_large_request_that_was_held_waits_until_the_connection_is_not_muted():
    """As a small one does, when the service releases it meanwhile."""
    rig = Rig()
    timers = []

    def call_later(_delay_s, callback, *arguments):
        timers.append(Timer(callback, arguments))
        return timers[-1]

    rig.loop.time = lambda: 0.0
    rig.loop.call_later = call_later
    echo = rig.service.serve

    def hold(connection, _request):
        connection.hold()

    rig.service.serve = hold
    body = b"x" * 10_000
    rig.receive(frame(body))
    rig.connection.mute(1000)
    rig.service.serve = echo
    rig.connection.release()
    assert rig.service.seen == []
    timers[0].fire()
    rig.loop.run()
    assert rig.service.seen == [body]
    assert rig.transport.reading


def test_the_budget_makes_large_requests_wait_for_each_other():
    """Bytes under assembly are bounded over all connections."""
    first = Rig(budget_bytes=12_000)
    second = Rig()
    second.hub.budget = first.hub.budget
    first.receive(frame(b"a" * 10_000)[:5000])
    second.receive(frame(b"b" * 10_000)[:4000])
    assert not second.transport.reading
    first.receive(frame(b"a" * 10_000)[5000:])
    assert second.transport.reading


def sharing(first, count):
    """More connections with the budget of the first, each from another address."""
    others = [Rig() for _ in range(count)]
    for number, each in enumerate(others):
        each.hub.budget = first.hub.budget
        each.connection.peer_host = f"10.0.1.{number}"
    return others


def test_who_holds_memory_and_sends_little_is_closed_while_others_wait(caplog):
    """Not while no request waits, and not where a tenth of the request came in the time."""
    first = Rig(budget_bytes=12_000)
    (second,) = sharing(first, 1)
    first.receive(frame(b"a" * 10_000)[:5000])
    assert first.loop.later == []
    second.receive(frame(b"b" * 10_000)[:4000])
    first.receive(b"a" * 1001)
    second.loop.run_later()
    assert not first.transport.aborted
    second.loop.run_later()
    assert first.transport.aborted
    assert "less than a tenth of its request came in 10 s" in caplog.text
    first.connection.connection_lost(None)
    assert second.transport.reading
    second.receive(frame(b"b" * 10_000)[4000:])
    assert second.service.seen == [b"b" * 10_000]
    second.loop.run_later()
    assert second.loop.later == []


def test_what_has_come_as_a_whole_is_not_slow():
    """It waits to be served, which is the broker's time."""
    first = Rig(budget_bytes=12_000)
    (second,) = sharing(first, 1)
    serve, first.service.serve = first.service.serve, lambda connection, _: connection.hold()
    first.receive(frame(b"a" * 10_000))
    second.receive(frame(b"b" * 10_000)[:4000])
    second.loop.run_later()
    assert not first.transport.aborted
    first.service.serve = serve
    first.connection.release()
    first.loop.run()
    assert second.transport.reading


def test_a_client_that_leaves_the_line_is_forgotten():
    """It waited for memory; the next in line gets it."""
    first = Rig(budget_bytes=12_000)
    second, third = sharing(first, 2)
    first.receive(frame(b"a" * 10_000)[:5000])
    for each in (second, third):
        each.receive(frame(b"b" * 10_000)[:4000])
    second.connection.connection_lost(None)
    first.connection.connection_lost(None)
    assert third.transport.reading
    third.connection.connection_lost(None)
    assert first.hub.budget.held_bytes == 0
    assert not first.hub.budget.is_short


def test_buffers_of_large_requests_are_used_again():
    """Within bounds: what would take too much memory goes back to the system."""
    budget = MemoryBudget(1 << 30)
    holder = Rig().connection
    assert budget.take(holder, 100_000)
    first = budget.buffer(100_000)
    budget.give_buffer(holder, first)
    assert budget.held_bytes == 0
    assert budget.buffer(50_000).obj is first.obj
    assert budget.buffer(50_000).obj is not first.obj
    assert budget.take(holder, 8 << 20)
    large = budget.buffer(8 << 20)
    budget.give_buffer(holder, large)
    assert budget.buffer(8 << 20).obj is not large.obj


@pytest.mark.parametrize("size", [0, -1, -(2**31), 1025, 2**31 - 1])
def test_a_header_that_lies_about_its_size_closes_the_connection(size):
    """No memory is taken for a size that cannot be."""
    rig = Rig(request_bytes_max=1024)
    rig.receive(struct.pack(">i", size) + b"junk")
    assert rig.transport.aborted
    assert rig.service.seen == []


@pytest.mark.parametrize(
    ("head", "said"),
    [
        (b"\x16\x03\x01\x02\x00\x01", "TLS handshake"),
        (b"GET / HTTP/1.1\r\n", "HTTP request"),
        (b"SSH-2.0-OpenSSH", "SSH greeting"),
    ],
)
def test_a_foreign_protocol_is_named_in_the_log(head, said, caplog):
    """The log says what came and what to do, even where sizes as large as that are allowed."""
    rig = Rig(request_bytes_max=2**31 - 1)
    rig.receive(head)
    assert rig.transport.aborted
    assert said in caplog.text


def test_an_http_request_gets_an_answer_it_understands():
    """400, and one line that says whose protocol this is."""
    rig = Rig()
    rig.receive(b"GET / HTTP/1.1\r\nHost: broker\r\n\r\n")
    head, _, body = rig.written.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 ")
    assert b"Content-Length: %d" % len(body) in head
    assert body.count(b"\n") == 1
    assert b"Kafka's protocol, not HTTP" in body
    assert rig.transport.aborted


def test_an_http_verb_among_requests_gets_no_http():
    """A client that has spoken Kafka's protocol would take the answer for another's."""
    rig = Rig()
    rig.receive(frame(b"one") + b"GET / HTTP/1.1\r\n")
    assert b"HTTP" not in rig.written
    assert rig.transport.aborted


def test_a_client_that_comes_again_and_again_fills_no_log(caplog):
    """One line for each address and kind in ten minutes, with the number of those between."""
    hub = Rig().hub

    def come(head):
        rig = Rig(hub=hub)
        rig.receive(head)

    tls, http = b"\x16\x03\x01\x02\x00\x01", b"GET / HTTP/1.1\r\n"
    for _ in range(78):
        come(tls)
    come(http)
    assert [record.getMessage().count("a TLS handshake") for record in caplog.records] == [1, 0]
    hub.now_s = 601.0
    come(tls)
    assert "(77 more like it since the last such line)" in caplog.records[-1].getMessage()


@pytest.mark.parametrize("request_body", [b"close", b"crash"])
def test_a_request_that_fails_closes_its_connection_only(request_body):
    """The supervisor of connections: nothing escapes, nothing more is served."""
    rig = Rig()
    rig.receive(frame(request_body) + frame(b"two"))
    assert rig.transport.aborted
    assert rig.service.seen == [request_body]


def test_an_answer_after_the_connection_is_lost_goes_nowhere():
    """A handler need not know whether the client is still there."""
    rig = Rig()
    rig.receive(frame(b"later"))
    rig.connection.connection_lost(None)
    rig.service.slots[0].answer([b"too late"])
    rig.loop.run()
    assert rig.written == b""
    assert rig.hub.closed == [rig.connection]


def test_a_wait_for_a_client_that_left_is_abandoned():
    """A long poll of a client that is gone is forgotten; an answered one is not."""
    rig = Rig()
    abandoned = []
    rig.receive(frame(b"later 1") + frame(b"later 2"))
    for number, slot in enumerate(rig.service.slots):
        slot.on_abandoned = lambda number=number: abandoned.append(number)
    rig.service.slots[1].answer([b"(2)"])
    rig.connection.connection_lost(None)
    assert abandoned == [0]


def test_a_region_waits_with_a_descriptor_of_its_own(tmp_path):
    """The segment may be deleted, and its descriptor given to another file, before its turn."""
    path = tmp_path / "segment"
    path.write_bytes(b"0123456789")
    rig = Rig()
    rig.receive(frame(b"later 1") + frame(b"later 2"))
    descriptor = os.open(path, os.O_RDONLY)
    rig.service.slots[1].answer([b"<", FileRegion(descriptor, 2, 5), b">"])
    os.close(descriptor)
    rig.service.slots[0].answer([b"(1)"])
    rig.loop.run()
    assert rig.written == b"(1)<23456>"


def test_regions_of_a_client_that_left_are_closed(tmp_path):
    """No descriptor leaks, wherever in line the region stood."""
    path = tmp_path / "segment"
    path.write_bytes(b"0123456789")
    rig = Rig()
    rig.receive(frame(b"later 1") + frame(b"later 2"))
    before = len(os.listdir("/proc/self/fd"))
    with path.open("rb") as file:
        rig.service.slots[1].answer([FileRegion(file.fileno(), 0, 10)])
    assert len(os.listdir("/proc/self/fd")) == before + 1
    rig.connection.connection_lost(None)
    assert len(os.listdir("/proc/self/fd")) == before


def test_regions_of_the_turn_that_closes_are_closed(tmp_path):
    """An answer that waits for a slow reader is let go when the next request is refused."""
    path = tmp_path / "segment"
    path.write_bytes(b"0123456789")
    rig = Rig()
    echo = rig.service.serve
    with path.open("rb") as file:

        def serve(connection, request):
            if request == b"region":
                return [FileRegion(file.fileno(), 0, 10)]
            connection.pause_writing()
            return echo(connection, request)

        rig.service.serve = serve
        before = len(os.listdir("/proc/self/fd"))
        rig.receive(frame(b"region") + frame(b"close"))
        assert rig.transport.aborted
        rig.connection.connection_lost(None)
        assert len(os.listdir("/proc/self/fd")) == before


def test_a_lost_connection_gives_its_budget_back():
    """A client that leaves in the middle of a large request holds no memory."""
    rig = Rig()
    rig.receive(frame(b"x" * 10_000)[:5000])
    assert rig.hub.budget.held_bytes == 10_004
    rig.connection.connection_lost(None)
    assert rig.hub.budget.held_bytes == 0


@pytest.mark.parametrize("first", [b"one", b"x" * 10_000], ids=["small", "large"])
def test_what_is_held_is_served_once_when_released_with_all_that_followed(first):
    """A service that is not ready loses no request and changes no order."""
    rig = Rig()
    echo = rig.service.serve
    is_ready = False

    def serve(connection, request):
        if is_ready:
            return echo(connection, request)
        connection.hold()
        return None

    rig.service.serve = serve
    rest = rig.receive(frame(first) + frame(b"two"))
    assert rig.written == b""
    assert not rig.transport.reading
    is_ready = True
    rig.connection.release()
    rig.loop.run()
    rig.receive(rest)
    rig.loop.run()
    assert rig.service.seen == [first, b"two"]
    assert rig.written == b"<" + first.upper() + b"><TWO>"
    assert rig.transport.reading
