"""Cutting a client's bytes into requests, without a socket."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.network.request_cutter import RequestCutter

SHARED_BYTES = 64
SIZE_MAX = 1000


def frame(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


class World:
    """A cutter, and a shared buffer that other connections overwrite between two turns."""

    def __init__(self, shared_bytes: int = SHARED_BYTES) -> None:
        self.shared = memoryview(bytearray(shared_bytes))
        self.cutter = RequestCutter(self.shared, SIZE_MAX)

    def bring(self, data: bytes, at_most: int = 1 << 20) -> int:
        """One receive: how many bytes of `data` it took."""
        room = self.cutter.get_buffer()
        count = min(len(room), len(data), at_most)
        room[:count] = data[:count]
        self.cutter.received(count)
        return count

    def cut(self, count_max: int = 1 << 20) -> list[bytes]:
        """The next requests, at most so many."""
        cutter, requests = self.cutter, []
        while len(requests) < count_max and cutter.advance():
            requests.append(bytes(cutter.view[cutter.start + 4 : cutter.position]))
        return requests

    def end_turn(self) -> int:
        """Keep the rest, and let others use the shared buffer; how large a buffer is needed."""
        if self.cutter.is_large_served:
            self.cutter.take_large()
        large_bytes = self.cutter.keep()
        self.shared[:] = b"\xee" * len(self.shared)
        return large_bytes

    def feed(self, data: bytes, at_most: int = 1 << 20) -> list[bytes]:
        """All requests in `data`, large ones received into buffers of their own."""
        requests = []
        while data:
            data = data[self.bring(data, at_most) :]
            requests += self.cut()
            if large_bytes := self.end_turn():
                self.cutter.begin_large(memoryview(bytearray(large_bytes)))
        return requests


@given(
    st.lists(st.binary(min_size=1, max_size=150), min_size=1, max_size=12),
    st.integers(min_value=1, max_value=90),
)
def test_a_stream_cut_anywhere_gives_the_same_requests(bodies: list[bytes], at_most: int) -> None:
    """Whatever a receive brings, and whether a request fits into the shared buffer or not."""
    world = World()
    assert world.feed(b"".join(frame(body) for body in bodies), at_most) == bodies
    assert not world.cutter.return_to_kept()
    assert world.cutter.take_large() is None


@given(
    st.lists(st.binary(min_size=1, max_size=8), min_size=1, max_size=5),
    st.integers(min_value=0, max_value=5),
)
def test_what_is_not_served_is_cut_again_later(bodies: list[bytes], served: int) -> None:
    """The turn may end after any request: the rest is neither lost nor doubled."""
    world = World()
    world.bring(b"".join(frame(body) for body in bodies))
    first = world.cut(served)
    world.end_turn()
    world.cutter.return_to_kept()
    assert first + world.cut() == bodies


def test_a_request_that_is_taken_back_comes_again() -> None:
    """With the bytes behind it, in another turn."""
    world = World()
    world.bring(frame(b"one") + frame(b"two"))
    assert world.cut(1) == [b"one"]
    world.cutter.take_back()
    world.end_turn()
    assert world.cutter.return_to_kept()
    assert world.cut() == [b"one", b"two"]


def test_kept_requests_can_be_changed_where_they_lie() -> None:
    """An append writes offsets into the request."""
    world = World()
    world.bring(frame(b"one"))
    world.end_turn()
    world.cutter.return_to_kept()
    world.cutter.advance()
    world.cutter.view[world.cutter.start + 4] = ord("O")
    world.cutter.take_back()
    assert world.cut() == [b"One"]


def test_several_requests_may_be_served_at_once() -> None:
    """What lies between `start` and `end` is theirs; `position` says how far they were served."""
    world = World()
    run = frame(b"one") + frame(b"two")
    world.bring(run + frame(b"three"))
    world.cutter.advance()
    assert bytes(world.cutter.view[world.cutter.start : world.cutter.end]) == run + frame(b"three")
    world.cutter.position = world.cutter.start + len(run)
    assert world.cut() == [b"three"]


@pytest.mark.parametrize(("size", "needed"), [(28, 0), (29, 33), (1000, 1004)])
def test_a_request_of_more_than_half_the_shared_buffer_needs_its_own(
    size: int, needed: int
) -> None:
    """The size in front counts; nothing is needed for a request that fits."""
    world = World()
    world.bring(frame(b"x" * size)[:20])
    assert world.cut() == []
    assert world.end_turn() == needed
    assert world.cutter.large_bytes == needed


def test_a_large_request_is_received_into_its_buffer_and_given_up_when_served() -> None:
    """Nothing else is received before it is whole, and its buffer is free after it."""
    world = World()
    data = frame(bytes(range(100)))
    world.bring(data[:60])
    assert world.cut() == []
    buffer = memoryview(bytearray(world.end_turn()))
    world.cutter.begin_large(buffer)
    assert len(world.cutter.get_buffer()) == 44
    assert world.bring(data[60:80]) == 20
    assert world.cut() == []
    assert world.bring(data[80:] + b"more") == 24
    assert not world.cutter.is_large_served
    assert world.cut() == [bytes(range(100))]
    assert world.cutter.is_large_served
    assert world.cutter.take_large() is buffer
    assert world.cutter.get_buffer() is world.shared


def test_a_large_request_that_is_taken_back_stays_in_its_buffer() -> None:
    """It is not copied, and comes again."""
    world = World()
    data = frame(b"x" * 100)
    world.bring(data[:60])
    world.cutter.begin_large(memoryview(bytearray(world.end_turn())))
    world.bring(data[60:])
    assert world.cut() == [b"x" * 100]
    world.cutter.take_back()
    assert not world.cutter.is_large_served
    assert world.end_turn() == 0
    assert world.cutter.return_to_kept()
    assert world.cut() == [b"x" * 100]


def test_a_large_request_may_be_given_up_before_it_is_whole() -> None:
    """Its connection has ended."""
    world = World()
    world.bring(frame(b"x" * 100)[:60])
    world.cut()
    world.cutter.begin_large(memoryview(bytearray(world.end_turn())))
    large = world.cutter.take_large()
    assert large is not None
    assert len(large) == 104
    assert world.cutter.take_large() is None


@pytest.mark.parametrize("size", [0, -1, -(2**31), SIZE_MAX + 1, 2**31 - 1])
def test_a_size_that_no_request_has_ends_the_cutting(size: int) -> None:
    """Requests in front of it are good; nothing after it is read, and no buffer is asked for."""
    world = World()
    world.bring(frame(b"one") + struct.pack(">i", size) + b"junk")
    assert world.cut() == [b"one"]
    assert world.cutter.bad_bytes is not None
    assert str(size) in world.cutter.bad_bytes.reason
    assert world.cutter.bad_bytes.answer == b""
    assert world.cut() == []


def test_a_foreign_protocol_is_answered_only_if_it_speaks_first() -> None:
    """A client that has spoken Kafka's protocol would take an answer for another's."""
    world = World()
    world.bring(b"GET / HTTP/1.1\r\n")
    assert world.cut() == []
    assert world.cutter.bad_bytes is not None
    assert world.cutter.bad_bytes.kind == "HTTP"
    assert world.cutter.bad_bytes.answer.startswith(b"HTTP/1.1 400 ")
    world = World()
    world.bring(frame(b"one") + b"GET / HTTP/1.1\r\n")
    assert world.cut() == [b"one"]
    assert world.cutter.bad_bytes is not None
    assert world.cutter.bad_bytes.kind == "HTTP"
    assert world.cutter.bad_bytes.answer == b""


def test_a_foreign_protocol_is_seen_even_where_its_bytes_could_be_a_size() -> None:
    """`GET ` is a size of 1,195,725,856 bytes, which a setting may allow."""
    cutter = RequestCutter(memoryview(bytearray(64)), 2**31 - 1)
    cutter.get_buffer()[:4] = b"GET "
    cutter.received(4)
    assert cutter.advance() == 0
    assert cutter.bad_bytes is not None
    assert cutter.bad_bytes.kind == "HTTP"


def test_a_client_that_is_not_known_yet_leaves_little_to_keep() -> None:
    """One receive brings no more than was allowed, however much it sends; later it may again."""
    world = World()
    world.cutter.limit(20, 24)
    assert world.bring(frame(b"a" * 20) + b"b" * 100) == 24
    assert world.cut(count_max=0) == []
    world.end_turn()
    # A transport may read once more in spite of a pause.
    assert world.bring(b"c" * 100) == 24
    world.cutter.limit(SIZE_MAX)
    world.end_turn()
    assert world.bring(b"d" * 100) == SHARED_BYTES - 48
