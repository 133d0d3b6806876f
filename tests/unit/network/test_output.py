"""Output in order: bytes, warm and cold regions of files, and sockets that take no more."""

import asyncio
import os

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


class Rig:
    def __init__(self):
        self.transport = FakeTransport()
        self.drained = asyncio.Event()
        self.output = Output(self.transport, asyncio.get_running_loop(), self.drained.set)
        self.transport.output = self.output

    @property
    def written(self):
        return b"".join(self.transport.writes)


def run(coroutine):
    asyncio.run(asyncio.wait_for(coroutine, 60))


@pytest.fixture
def segment(tmp_path):
    """A file of a megabyte, open and on the disk."""
    path = tmp_path / "segment"
    path.write_bytes(os.urandom(1 << 20))
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


def test_a_slow_socket_gets_one_chunk_at_a_time(segment):
    """What waits is a place in a file, not its bytes."""

    async def scenario():
        rig = Rig()
        rig.transport.pauses = True
        rig.output.send(held([b"head", FileRegion(segment, 10, 3 * CHUNK_BYTES), b"tail"]))
        sizes = [len(rig.transport.writes[-1])]
        assert rig.output.waiting_bytes_in_memory == len(b"tail")
        while rig.output.blocked:
            rig.output.resume()
            sizes.append(len(rig.transport.writes[-1]))
            assert len(sizes) < 10
        assert sizes[:5] == [4, CHUNK_BYTES, CHUNK_BYTES, CHUNK_BYTES, 4]
        expected = b"head" + os.pread(segment, 3 * CHUNK_BYTES, 10) + b"tail"
        assert rig.written == expected
        assert rig.drained.is_set()

    run(scenario())


def test_a_cold_region_waits_for_a_thread_and_keeps_its_place(segment, monkeypatch):
    """The loop goes on meanwhile; what was sent after it comes after it."""

    async def scenario():
        monkeypatch.setattr("ottla.network.output.read_warm", lambda *_: b"")
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
    assert bytes(read_warm(segment, 5, 1000)) == os.pread(segment, 1000, 5)


def test_a_file_that_ends_too_soon_ends_the_connection(segment):
    """The size of the answer is told already: there is no other way to say so."""

    async def scenario():
        rig = Rig()
        rig.output.send(held([FileRegion(segment, (1 << 20) - 10, 20)]))
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
