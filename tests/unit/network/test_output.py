"""Output in order: bytes, warm and cold regions of files, and sockets that take no more."""

import asyncio
import errno
import gc
import os
import socket

import pytest

from ottla.network.output import CHUNK_BYTES, Output, held, read_warm
from ottla.wire.parts import FileRegion


class FakeTransport:
    """Takes everything, or pauses its output after every write."""

    def __init__(self):
        self.writes = []
        self.output = None
        self.pauses = False
        self.aborted = asyncio.Event()

    def write(self, data):
        self.writes.append(bytes(data))
        if self.pauses:
            self.output.pause()

    def abort(self):
        self.aborted.set()

    def get_write_buffer_size(self):
        return 0

    def get_extra_info(self, _name):
        return None


class Rig:
    def __init__(self):
        self.transport = FakeTransport()
        self.drained = asyncio.Event()
        self.chunk = memoryview(bytearray(CHUNK_BYTES))
        self.output = Output(
            self.transport, asyncio.get_running_loop(), self.drained.set, self.chunk
        )
        self.transport.output = self.output

    @property
    def written(self):
        return b"".join(self.transport.writes)


def read_bytes(monkeypatch):
    """How much each read of a file gives from now on."""
    found = []

    def reading(*arguments):
        found.append(read_warm(*arguments))
        return found[-1]

    monkeypatch.setattr("ottla.network.output.read_warm", reading)
    return found


def run(coroutine):
    asyncio.run(asyncio.wait_for(coroutine, 60))


@pytest.fixture
def segment(tmp_path):
    """A file of two megabytes, open and on the disk."""
    path = tmp_path / "segment"
    path.write_bytes(os.urandom(2 << 20))
    descriptor = os.open(path, os.O_RDONLY)
    os.fsync(descriptor)
    yield descriptor
    os.close(descriptor)


def test_small_answers_leave_in_one_write():
    """One write per turn, whatever the number of answers."""

    async def scenario():
        rig = Rig()
        rig.output.send([b"one", bytearray(b"two"), memoryview(b"three")])
        assert rig.transport.writes == [b"onetwothree"]
        assert not rig.output.blocked

    run(scenario())


def test_regions_are_let_go_where_descriptors_run_out(segment, monkeypatch):
    """The connection fails; the descriptors taken for its answer are free again."""
    taken = []

    def dup(descriptor):
        if len(taken) == 2:
            raise OSError(errno.EMFILE, "Too many open files")
        taken.append(duplicate(descriptor))
        return taken[-1]

    duplicate = os.dup
    monkeypatch.setattr(os, "dup", dup)
    with pytest.raises(OSError, match="Too many"):
        held([b"head", *[FileRegion(segment, 0, 10)] * 3])
    for descriptor in taken:
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(descriptor)


def test_a_slow_socket_gets_one_chunk_at_a_time(segment, monkeypatch):
    """What waits is a place in a file, not its bytes."""

    async def scenario():
        rig = Rig()
        read = read_bytes(monkeypatch)
        rig.transport.pauses = True
        rig.output.send(held([b"head", FileRegion(segment, 10, 3 * CHUNK_BYTES), b"tail"]))
        sizes = [len(rig.transport.writes[-1])]
        assert sum(read) == CHUNK_BYTES
        while rig.output.blocked:
            rig.output.resume()
            sizes.append(len(rig.transport.writes[-1]))
            assert len(sizes) < 10
        assert sizes[:4] == [4 + CHUNK_BYTES, CHUNK_BYTES, CHUNK_BYTES, 4]
        expected = b"head" + os.pread(segment, 3 * CHUNK_BYTES, 10) + b"tail"
        assert rig.written == expected
        assert rig.drained.is_set()

    run(scenario())


def test_a_cold_region_waits_for_a_thread_and_keeps_its_place(segment, monkeypatch):
    """The loop goes on meanwhile; what was sent after it comes after it."""

    async def scenario():
        monkeypatch.setattr("ottla.network.output.read_warm", lambda *_: 0)
        rig = Rig()
        rig.output.send(held([FileRegion(segment, 0, 1 << 20)]))
        assert rig.transport.writes == []
        rig.output.send([b"after"])
        await rig.drained.wait()
        assert rig.written == os.pread(segment, 1 << 20, 0) + b"after"

    run(scenario())


def test_a_warm_region_is_read_at_once(segment):
    """What the page cache holds needs no thread."""
    os.pread(segment, 1 << 20, 0)
    room = bytearray(1000)
    assert read_warm(segment, 5, memoryview(room)) == 1000
    assert room == os.pread(segment, 1000, 5)


def test_a_file_that_ends_too_soon_ends_the_connection(segment):
    """The size of the answer is told already: there is no other way to say so."""

    async def scenario():
        rig = Rig()
        rig.output.send(held([FileRegion(segment, (2 << 20) - 10, 20)]))
        await rig.transport.aborted.wait()
        assert len(rig.written) == 10

    run(scenario())


def test_closing_gives_descriptors_back(segment):
    """Also in the middle of a cold read."""

    async def scenario():
        rig = Rig()
        rig.output.pause()
        before = len(os.listdir("/proc/self/fd"))
        rig.output.send(held([FileRegion(segment, 0, 100), FileRegion(segment, 0, 100)]))
        assert len(os.listdir("/proc/self/fd")) == before + 2
        rig.output.close()
        assert len(os.listdir("/proc/self/fd")) == before

    run(scenario())


def test_a_file_that_cannot_be_read_ends_the_connection(tmp_path):
    """The answer's size is on its way, so only closing tells the client; nothing is left open."""

    async def check():
        rig = Rig()
        folder = os.open(tmp_path, os.O_RDONLY)  # Reading a folder fails, as of a broken disk.
        rig.output.send(held([b"answer", FileRegion(folder, 0, 100)]))
        os.close(folder)
        await rig.transport.aborted.wait()
        assert rig.written == b"answer"

    run(check())


def test_a_read_that_fails_after_the_connection_has_ended_is_no_error_of_the_loop(tmp_path, caplog):
    """As on a disk that lost its power: the client is gone, and the loop has nothing to report."""

    async def check():
        rig = Rig()
        folder = os.open(tmp_path, os.O_RDONLY)  # Reading a folder fails, as of a broken disk.
        rig.output.send(held([FileRegion(folder, 0, 100)]))
        os.close(folder)
        rig.output.close()
        await asyncio.get_running_loop().shutdown_default_executor()
        await asyncio.sleep(0)
        gc.collect()

    run(check())
    assert "never retrieved" not in caplog.text


class Feeding(asyncio.Protocol):
    """Tells an output what its transport says."""

    def pause_writing(self):
        self.output.pause()

    def resume_writing(self):
        self.output.resume()


def test_a_real_socket_gets_everything_in_order_however_slowly_it_reads(segment):
    """What it does not take at once goes through the transport; nothing overtakes it."""

    async def scenario():
        loop = asyncio.get_running_loop()
        near, far = socket.socketpair()
        far.setblocking(False)
        transport, feeding = await loop.create_connection(Feeding, sock=near)
        drained = asyncio.Event()
        chunk = memoryview(bytearray(CHUNK_BYTES))
        feeding.output = Output(transport, loop, drained.set, chunk)
        expected = b""
        for number in range(5):
            head, tail = b"head %d" % number, b"tail" * number
            feeding.output.send(held([head, FileRegion(segment, number, 1_000_000), tail]))
            feeding.output.send([b"between"])
            expected += head + os.pread(segment, 1_000_000, number) + tail + b"between"
        assert feeding.output.blocked
        received = bytearray()
        while len(received) < len(expected):
            received += await loop.sock_recv(far, 50_000)
        assert received == expected
        assert drained.is_set()
        assert not feeding.output.blocked
        transport.abort()
        far.close()

    run(scenario())


def test_regions_of_many_files_leave_together(segment):
    """One write for all that fits into a chunk: a fetch of many partitions is one answer."""

    async def scenario():
        rig = Rig()
        parts = [FileRegion(segment, number * 100, 100) for number in range(10)]
        rig.output.send(held(parts))
        assert rig.transport.writes == [os.pread(segment, 1000, 0)]

    run(scenario())
