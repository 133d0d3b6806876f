"""Laws of a TLS connection: handshakes are off the loop, bytes are whole, ends are clean."""

import asyncio
import contextlib
import ssl
import threading
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from datetime import UTC, datetime

import pytest

from ottla.network.tls.stream import RECEIVE_BYTES, TlsStream
from ottla.operations.certificates import make_development_files

BUFFER = memoryview(bytearray(RECEIVE_BYTES))


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return make_development_files(tmp_path_factory.mktemp("certs"), [], "alice", datetime.now(UTC))


class Step(ssl.SSLObject):
    """Notes the thread of each step of a handshake."""

    threads: list[int] = []  # noqa: RUF012  # Of all connections of a test.

    def do_handshake(self):
        self.threads.append(threading.get_ident())
        super().do_handshake()


class Client(asyncio.Transport):
    """The client's end of a connection in memory: to the stream it is the plain transport."""

    def __init__(self, files, version=None, ciphers=None):
        super().__init__()
        context = ssl.create_default_context(cafile=str(files.authority))
        if version is not None:
            context.minimum_version = context.maximum_version = version
        if ciphers is not None:
            context.maximum_version = ssl.TLSVersion.TLSv1_2
            context.set_ciphers(ciphers)
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(
            self.incoming, self.outgoing, server_side=False, server_hostname="localhost"
        )
        self.is_reading = True
        self.closed = ""
        self.kept = b""

    # -- what the stream calls

    def write(self, data):
        self.incoming.write(data)

    def write_eof(self):
        self.incoming.write_eof()

    def pause_reading(self):
        self.is_reading = False

    def resume_reading(self):
        self.is_reading = True
        self.deliver()

    def is_closing(self):
        return bool(self.closed)

    def close(self):
        self.closed = self.closed or "closed"
        self.incoming.write_eof()

    def abort(self):
        self.closed = self.closed or "aborted"

    def set_write_buffer_limits(self, high=None, low=None):
        pass

    def get_write_buffer_size(self):
        return 0

    def get_extra_info(self, name, default=None):
        return default

    # -- what the client does

    def meet(self, stream):
        self.stream = stream
        stream.connection_made(self)

    def send(self, data):
        """Send bytes on the wire; they wait while the stream does not read."""
        self.kept += data
        if self.is_reading:
            self.deliver()

    def deliver(self):
        data, self.kept = self.kept, b""
        while data:
            room = self.stream.get_buffer(-1)
            count = min(len(room), len(data))
            room[:count] = data[:count]
            self.stream.buffer_updated(count)
            data = data[count:]

    def step(self):
        """Take a step of the handshake; return whether it is done."""
        try:
            self.tls.do_handshake()
        except ssl.SSLWantReadError:
            return False
        finally:
            if self.outgoing.pending:
                self.send(self.outgoing.read())
        return True

    async def shaken(self):
        """Take all steps; the stream takes its own meanwhile."""
        while not self.step():  # noqa: ASYNC110  # Nothing else says that bytes have come.
            await asyncio.sleep(0)

    def say(self, data):
        """Send application data."""
        self.tls.write(data)
        self.send(self.outgoing.read())

    def hear(self):
        """Return all application data that has come."""
        heard = b""
        with contextlib.suppress(ssl.SSLWantReadError):
            while chunk := self.tls.read(1 << 16):
                heard += chunk
        return heard


class Served(asyncio.BufferedProtocol):
    """Collects what comes, into a small buffer."""

    def __init__(self, room=1000):
        self.room = bytearray(room)
        self.got = b""
        self.lost = []
        self.on_data = lambda: None

    def connection_made(self, transport):
        self.transport = transport

    def get_buffer(self, sizehint):
        return memoryview(self.room)

    def buffer_updated(self, nbytes):
        self.got += self.room[:nbytes]
        self.on_data()

    def connection_lost(self, exc):
        self.lost.append(exc)


class World:
    """A stream and its client; `connect` does the handshake."""

    def __init__(self, files, **client):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.sslobject_class = Step
        context.load_cert_chain(files.server)
        self.threads = ThreadPoolExecutor(1)
        self.stream = TlsStream(asyncio.get_running_loop(), context, BUFFER)
        self.client = Client(files, **client)
        self.client.meet(self.stream)
        self.served = Served()

    async def shake(self):
        """Both sides, until the stream's is done."""
        task = asyncio.ensure_future(self.stream.handshake(self.threads))
        await self.client.shaken()
        await task

    async def connect(self):
        await self.shake()
        self.stream.begin(self.served)


def run(files, scenario, **options):
    async def main():
        Step.threads.clear()
        world = World(files, **options)
        try:
            await asyncio.wait_for(scenario(world), 60)
        finally:
            world.threads.shutdown()

    asyncio.run(main())


VERSIONS = pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])


@VERSIONS
def test_the_signatures_of_a_handshake_are_made_in_a_thread(files, version):
    """The loop serves other clients meanwhile; each step would take a millisecond of it."""

    async def scenario(world):
        await world.connect()
        assert len(Step.threads) >= 2
        assert threading.get_ident() not in Step.threads

    run(files, scenario, version=version)


def test_a_client_that_sends_nothing_takes_no_thread(files):
    async def scenario(world):
        task = asyncio.ensure_future(world.stream.handshake(world.threads))
        for _ in range(10):
            await asyncio.sleep(0)
        assert (Step.threads, task.done()) == ([], False)
        task.cancel()

    run(files, scenario)


def test_the_socket_is_not_read_while_a_thread_uses_the_tls_object(files):
    async def scenario(world):
        reads = []
        step = Step.do_handshake

        def watched(self):
            reads.append(world.client.is_reading)
            step(self)

        world.stream.get_extra_info("sslcontext").sslobject_class.do_handshake = watched
        try:
            await world.connect()
        finally:
            Step.do_handshake = step
        assert set(reads) == {False}
        assert world.client.is_reading

    run(files, scenario)


class Unfinished(Executor):
    """Runs a step of which the loop never learns that it is done."""

    def submit(self, step):
        with contextlib.suppress(ssl.SSLWantReadError):
            step()
        return Future()


def test_a_cancelled_handshake_leaves_the_buffers_to_the_thread(files):
    """The thread may be writing to them: OpenSSL's buffers are for one thread at a time."""

    async def scenario(world):
        world.client.step()
        task = asyncio.ensure_future(world.stream.handshake(Unfinished()))
        for _ in range(3):
            await asyncio.sleep(0)
        assert len(Step.threads) == 1
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        assert not world.client.incoming.pending

    run(files, scenario)


@VERSIONS
def test_bytes_come_whole_in_both_directions(files, version):
    """Larger than records, buffers and receives."""
    data = bytes(range(256)) * 4096

    async def scenario(world):
        await world.connect()
        world.client.say(data[:1])
        world.client.say(data[1:])
        assert world.served.got == data
        world.stream.write(memoryview(data))
        world.stream.writelines([b"a", b"", b"b"])
        world.stream.write(b"")
        assert world.client.hear() == data + b"ab"

    run(files, scenario, version=version)


def test_requests_that_come_with_the_end_of_the_handshake_are_served(files):
    """Even if the client closes its side at once, as producers without acks do."""

    async def scenario(world):
        client = world.client
        task = asyncio.ensure_future(world.stream.handshake(world.threads))
        held = []
        sent, client.send = client.send, held.append
        client.step()
        sent(held.pop())
        await client.shaken()
        client.say(b"a request")
        client.send = sent
        client.send(b"".join(held))
        world.stream.eof_received()
        await task
        world.stream.begin(world.served)
        assert world.served.got == b"a request"
        assert client.closed == "closed"

    run(files, scenario, version=ssl.TLSVersion.TLSv1_3)


def test_a_protocol_that_pauses_gets_the_rest_when_it_resumes(files):
    async def scenario(world):
        await world.connect()
        world.served.on_data = world.stream.pause_reading
        world.client.say(b"x" * 3000)
        assert len(world.served.got) == 1000
        assert not world.client.is_reading
        world.served.on_data = lambda: None
        world.stream.resume_reading()
        assert len(world.served.got) == 1000, "not within the call"
        await asyncio.sleep(0)
        assert len(world.served.got) == 3000

    run(files, scenario)


def test_a_close_sends_what_was_written_and_the_end_of_the_stream(files):
    async def scenario(world):
        await world.connect()
        world.stream.write(b"the last answer")
        world.stream.close()
        world.stream.write(b"too late")
        world.client.say(b"too late")
        assert world.client.hear() == b"the last answer"
        assert world.client.tls.read(10) == b"", "the end of the TLS stream"
        assert (world.client.closed, world.served.got) == ("closed", b"")
        world.stream.connection_lost(None)
        assert world.served.lost == [None]

    run(files, scenario)


def test_a_client_that_ends_its_stream_is_closed_after_its_last_request(files):
    async def scenario(world):
        await world.connect()
        world.client.tls.write(b"last")
        with contextlib.suppress(ssl.SSLWantReadError):
            world.client.tls.unwrap()
        world.client.send(world.client.outgoing.read())
        assert (world.served.got, world.client.closed) == (b"last", "closed")

    run(files, scenario)


def test_invalid_bytes_end_the_connection_with_an_alert(files):
    async def scenario(world):
        await world.connect()
        world.client.send(b"\x17\x03\x03\x00\x20" + bytes(32))
        assert world.client.closed == "closed"
        with pytest.raises(ssl.SSLError, match=r"(?i)alert"):
            world.client.hear()

    run(files, scenario)


def test_an_answer_to_a_request_before_invalid_bytes_is_no_failure(files):
    """Both come in one receive: OpenSSL then encrypts nothing more."""

    async def scenario(world):
        await world.connect()
        world.served.on_data = lambda: world.stream.write(b"the answer")
        world.client.tls.write(b"a request")
        world.client.send(world.client.outgoing.read() + b"\x17\x03\x03\x00\x20" + bytes(32))
        assert (world.served.got, world.client.closed) == (b"a request", "closed")

    run(files, scenario)


def test_a_failed_handshake_is_raised_after_the_client_could_read_why(files):
    """The alert leaves, and the stream reads on until the client closes: no reset destroys it."""

    async def scenario(world):
        client = world.client
        task = asyncio.ensure_future(world.stream.handshake(world.threads))
        with pytest.raises(ssl.SSLError, match=r"(?i)alert"):
            await client.shaken()
        client.send(b"more of the client")
        await asyncio.sleep(0)
        assert (task.done(), client.closed, client.is_reading) == (False, "", True)
        world.stream.eof_received()
        with pytest.raises(ssl.SSLError, match="NO_SHARED_CIPHER"):
            await task

    run(files, scenario, ciphers="ECDHE-RSA-AES128-GCM-SHA256")


@pytest.mark.parametrize("leaves", ["eof_received", "connection_lost"])
def test_a_client_that_leaves_in_the_handshake_is_no_tls_error(files, leaves):
    async def scenario(world):
        task = asyncio.ensure_future(world.stream.handshake(world.threads))
        await asyncio.sleep(0)
        world.client.send(b"\x16\x03\x01")
        for _ in range(3):
            await asyncio.sleep(0)
        if leaves == "eof_received":
            world.stream.eof_received()
        else:
            world.stream.connection_lost(None)
        with pytest.raises(ConnectionResetError, match="left in the TLS handshake"):
            await task

    run(files, scenario)
