"""A stream of answers is cut into frames, however it arrives."""

import struct

import pytest

from ottla.network.frame_cutter import FrameCutter


class Receiver:
    """A cutter, and what it gave."""

    def __init__(self) -> None:
        self.frames: list[memoryview] = []
        self.bad: list[tuple[int, bytes]] = []
        self.cutter = FrameCutter(
            1 << 20, self.frames.append, lambda size, seen: self.bad.append((size, seen))
        )

    def receive(self, data: bytes, piece_bytes: int) -> None:
        """Bytes arrive, at most so many at once."""
        left = memoryview(data)
        while left:
            room = self.cutter.get_buffer()
            count = min(len(room), len(left), piece_bytes)
            room[:count] = left[:count]
            self.cutter.buffer_updated(count)
            left = left[count:]


def framed(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


@pytest.mark.parametrize("piece_bytes", [1, 7, 1 << 20])
def test_frames_are_whole_and_in_order_however_they_arrive(piece_bytes: int) -> None:
    """Small ones by many, one larger than the inbox, one behind it."""
    bodies = [b"aaaa", b"bbbbbb", b"c" * 100_000, b"dddd"]
    receiver = Receiver()
    receiver.receive(b"".join(map(framed, bodies)), piece_bytes)
    assert receiver.frames == bodies


def test_a_frame_stays_what_it_was() -> None:
    """Records are read from it after more has arrived."""
    receiver = Receiver()
    for body in (b"one.", b"x" * 70_000, b"two.", b"y" * 70_000):
        receiver.receive(framed(body), 1 << 20)
    assert receiver.frames == [b"one.", b"x" * 70_000, b"two.", b"y" * 70_000]


@pytest.mark.parametrize("size", [-1, 0, 3, (1 << 20) + 1])
def test_a_size_that_no_answer_has_ends_the_cutting(size: int) -> None:
    """What was seen is told once, and nothing after it is taken for a frame."""
    receiver = Receiver()
    receiver.receive(framed(b"good") + struct.pack(">i", size) + b"HTTP/1.1 400 Bad", 1 << 20)
    receiver.receive(framed(b"late"), 1 << 20)
    assert receiver.frames == [b"good"]
    assert receiver.bad == [(size, struct.pack(">i", size) + b"HTTP/1.1 400")]


def test_a_stopped_cutter_gives_nothing_more() -> None:
    """Not even what stands in the same bytes behind the frame that ended it."""
    frames: list[bytes] = []

    def on_frame(frame: memoryview) -> None:
        frames.append(bytes(frame))
        cutter.stop()

    cutter = FrameCutter(1 << 20, on_frame, lambda _size, _seen: None)
    data = framed(b"last") + framed(b"late")
    cutter.get_buffer()[: len(data)] = data
    cutter.buffer_updated(len(data))
    assert frames == [b"last"]
