"""The usual batch is told from all others as `validate` would: it never takes what that refuses."""

import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.base.crc32c import checksum
from ottla.base.errors import OttlaError
from ottla.base.varint import append_unsigned
from ottla.record.arrival import NUMBERS, BatchRun, usual_header, usual_run
from ottla.record.builder import BatchBuilder, build_batch
from ottla.record.header import HEADER_SIZE, BatchHeader, read_header
from ottla.record.validation import validate
from ottla.storage.segment.config import LogConfig

NOW_MS = 1_700_000_000_000
NEWEST_MS = NOW_MS + 3_600_000
SIZE_MAX = 1 << 20
HEAD = b"client and topic"


def batch(*times: int, **settings: Any) -> bytes:
    builder = BatchBuilder(**settings)
    for time in times or (NOW_MS, NOW_MS - 5, NOW_MS + 1):
        builder.append(time, b"k", b"v" * 20)
    return bytes(builder.build())


def request(data: bytes, *, flexible: bool) -> bytes:
    size = bytearray()
    if flexible:
        append_unsigned(size, len(data) + 1)
        return HEAD + size + data + b"\x00\x00\x00"
    return HEAD + struct.pack(">i", len(data)) + data


def look(data: bytes, *, flexible: bool = True, size_max: int = SIZE_MAX) -> BatchHeader | None:
    framed = request(data, flexible=flexible)
    return usual_header(framed, len(HEAD), flexible, size_max, NEWEST_MS)


@pytest.mark.parametrize("flexible", [False, True])
@pytest.mark.parametrize("count", [1, 2, 70, 9000])
def test_an_honest_batch_is_usual(count: int, flexible: bool) -> None:
    """Of every size of its length field; the header is what stands there."""
    data = batch(*range(NOW_MS - count, NOW_MS))
    assert look(data, flexible=flexible) == read_header(data)


def test_an_idempotent_batch_is_usual() -> None:
    data = batch(producer_id=5, producer_epoch=0, base_sequence=7)
    assert look(data) == read_header(data)


@pytest.mark.parametrize("compression", [1, 2, 3, 4])
def test_a_compressed_batch_is_not_usual(compression: int) -> None:
    assert look(batch(compression=compression)) is None


@pytest.mark.parametrize(
    ("layout", "position", "value"),
    [
        (">q", 0, 5),
        (">i", 8, 60),
        (">b", 16, 1),
        (">h", 21, 0x08),
        (">h", 21, 0x10),
        (">h", 21, 0x20),
        (">i", 23, 5),
        (">q", 35, NEWEST_MS + 1),
        (">q", 35, NOW_MS - 10_000),
        (">q", 43, 3),
        (">i", 57, 0),
        (">i", 57, 4),
    ],
)
def test_a_header_that_raises_a_question_is_not_usual(
    layout: str, position: int, value: int
) -> None:
    data = bytearray(batch())
    struct.pack_into(layout, data, position, value)
    struct.pack_into(">I", data, 17, checksum(data[21:]))
    assert look(bytes(data)) is None


def test_a_batch_larger_than_allowed_is_not_usual() -> None:
    data = batch()
    assert look(data, size_max=len(data)) is not None
    assert look(data, size_max=len(data) - 1) is None


@pytest.mark.parametrize("flexible", [False, True])
def test_a_request_cut_short_is_not_usual(flexible: bool) -> None:
    """At every byte, and with a byte more than it says."""
    framed = request(batch(), flexible=flexible)
    for end in range(len(framed)):
        assert usual_header(framed[:end], len(HEAD), flexible, SIZE_MAX, NEWEST_MS) is None
    assert usual_header(framed + b"\x00", len(HEAD), flexible, SIZE_MAX, NEWEST_MS) is None


@pytest.mark.parametrize("position", [-1, 10_000, 1 << 40])
@pytest.mark.parametrize("flexible", [False, True])
def test_a_place_outside_of_the_request_is_not_usual(position: int, flexible: bool) -> None:
    framed = request(batch(), flexible=flexible)
    assert usual_header(framed, position, flexible, SIZE_MAX, NEWEST_MS) is None


@given(st.binary(max_size=120), st.integers(0, 10), st.booleans())
def test_rubbish_is_not_usual(rubbish: bytes, position: int, flexible: bool) -> None:
    assert usual_header(rubbish, position, flexible, SIZE_MAX, NEWEST_MS) is None


@given(st.data(), st.booleans())
def test_what_is_usual_validate_takes_unchanged(data: st.DataObject, flexible: bool) -> None:
    """Any byte changed and the checksum made right again: never more than `validate` takes."""
    values = data.draw(st.lists(st.none() | st.binary(max_size=150), min_size=1, max_size=80))
    changed = bytearray(build_batch([NOW_MS] * len(values), None, values))
    position = data.draw(st.integers(0, len(changed) - 1))
    changed[position] ^= data.draw(st.integers(0, 255))
    if data.draw(st.booleans()):
        struct.pack_into(">I", changed, 17, checksum(changed[21:]))
    header = look(bytes(changed), flexible=flexible)
    view = memoryview(changed)
    try:
        expected = validate(view, LogConfig(), NOW_MS)
    except OttlaError:
        assert header is None
        return
    if header is not None:
        assert expected.buffer is view
        assert header == expected.header


OPENING = b"\x00\x00\x00\x09"
PREFIX = HEAD[8:]


def framed(correlation_id: int, data: bytes, *, flexible: bool, opening: bytes = OPENING) -> bytes:
    """A whole request behind its size, as it is received."""
    whole = bytearray(request(data, flexible=flexible))
    whole[:8] = opening + struct.pack(">i", correlation_id)
    return struct.pack(">i", len(whole)) + whole


def run_in(received: bytes, *, flexible: bool = True, count_max: int = 10) -> BatchRun | None:
    return usual_run(
        memoryview(received), OPENING, PREFIX, flexible, SIZE_MAX, NEWEST_MS, count_max
    )


def ids(run: BatchRun | None) -> list[int]:
    return [] if run is None else [arrived.correlation_id for arrived in run.arrived]


@pytest.mark.parametrize("flexible", [False, True])
def test_a_run_tells_each_batch_and_its_request(flexible: bool) -> None:
    """In their order, where they lie; what is not whole yet is left."""
    sent = [batch(NOW_MS), batch(*[NOW_MS] * 70), batch()]
    requests = [
        framed(number, data, flexible=flexible) for number, data in enumerate(sent, start=-1)
    ]
    received = bytearray(b"".join(requests) + requests[0][:-1])
    run = usual_run(memoryview(received), OPENING, PREFIX, flexible, SIZE_MAX, NEWEST_MS, 10)
    assert ids(run) == [-1, 0, 1]
    assert run is not None
    headers = [read_header(data) for data in sent]
    assert run.first == headers[0]
    assert [bytes(batch) for batch in run.batches] == sent
    assert [arrived.size for arrived in run.arrived] == [len(data) for data in sent]
    for name in ("last_offset_delta", "max_timestamp", "base_sequence"):
        found = [getattr(arrived, name) for arrived in run.arrived]
        assert found == [getattr(header, name) for header in headers]
    assert [4 + arrived.request_bytes for arrived in run.arrived] == [len(one) for one in requests]
    run.batches[0][0] = 7
    assert received[len(requests[0]) - len(sent[0]) - 3 * flexible] == 7


def test_a_run_has_the_sums_of_its_batches() -> None:
    """In bytes, requests and records, and the greatest timestamp, which may be any batch's."""
    sent = [batch(NOW_MS - 9), batch(*[NOW_MS] * 70), batch(NOW_MS - 5)]
    requests = [framed(number, data, flexible=True) for number, data in enumerate(sent)]
    run = run_in(b"".join(requests))
    assert run is not None
    assert (run.size, run.request_bytes) == (sum(map(len, sent)), sum(map(len, requests)))
    assert (run.record_count, run.max_timestamp) == (72, NOW_MS)
    assert (run.producer_id, len(run)) == (-1, 3)


def test_a_run_is_placed_and_answered() -> None:
    """Each batch gets its own offset and the leader epoch, each answer its own numbers."""
    sent = [batch(NOW_MS), batch(*[NOW_MS] * 70), batch()]
    requests = [framed(number + 5, data, flexible=True) for number, data in enumerate(sent)]
    run = usual_run(
        memoryview(bytearray(b"".join(requests))), OPENING, PREFIX, True, SIZE_MAX, NEWEST_MS, 10
    )
    assert run is not None
    run.place(1 << 40, 7)
    for placed, data, offset in zip(run.batches, sent, (0, 1, 71), strict=True):
        expected = read_header(data)._replace(base_offset=(1 << 40) + offset, leader_epoch=7)
        assert read_header(placed) == expected
        assert bytes(placed[HEADER_SIZE:]) == data[HEADER_SIZE:]
    template = bytes(range(50))
    answers = bytes(run.answers(template, 20, 1 << 40, 3))
    assert len(answers) == 3 * len(template)
    for number, offset in enumerate((0, 1, 71)):
        answer = answers[number * 50 : (number + 1) * 50]
        assert answer[4:8] == struct.pack(">i", number + 5)
        assert answer[20:44] == NUMBERS.pack((1 << 40) + offset, -1, 3)
        assert (
            answer[:4] + answer[8:20] + answer[44:] == template[:4] + template[8:20] + template[44:]
        )


def test_a_run_is_no_longer_than_asked_for() -> None:
    received = b"".join(framed(number, batch(), flexible=True) for number in range(5))
    assert ids(run_in(received, count_max=3)) == [0, 1, 2]


OTHERS = {
    "another API or version": framed(9, batch(), flexible=True, opening=b"\x00\x01\x00\x09"),
    "another client or topic": framed(9, batch(), flexible=True).replace(b"topic", b"tonic"),
    "a compressed batch": framed(9, batch(compression=1), flexible=True),
    "a damaged batch": framed(9, batch()[:-1] + b"\xff", flexible=True),
    "another producer": framed(9, batch(producer_id=5, producer_epoch=0), flexible=True),
    "no request": b"\xff" * 100,
    "an empty request": b"\x00" * 100,
    "a huge request": b"\x7f" * 100,
}


@pytest.mark.parametrize("what", OTHERS)
def test_a_run_ends_before_what_is_not_like_it(what: str) -> None:
    """What comes after that is none of its business."""
    usual = framed(1, batch(), flexible=True)
    assert ids(run_in(usual * 2 + OTHERS[what] + usual)) == [1, 1]


@pytest.mark.parametrize("end", range(0, 300, 7))
def test_a_run_cut_anywhere_has_only_whole_requests(end: int) -> None:
    usual = framed(1, batch(), flexible=True)
    assert len(ids(run_in((usual * 3)[:end]))) == end // len(usual)


@pytest.mark.parametrize(
    ("fields", "count"),
    [
        ({"producer_id": 5, "producer_epoch": 0, "base_sequence": 10}, 2),
        ({"producer_id": 5, "producer_epoch": 0, "base_sequence": 7}, 1),
        ({"producer_id": 5, "producer_epoch": 0, "base_sequence": 11}, 1),
        ({"producer_id": 5, "producer_epoch": 1, "base_sequence": 10}, 1),
        ({"producer_id": 6, "producer_epoch": 0, "base_sequence": 10}, 1),
        ({}, 1),
    ],
)
def test_a_producers_run_goes_on_with_its_next_sequence(fields: dict[str, int], count: int) -> None:
    """A gap, a repetition, another epoch or producer are looked at by themselves."""
    first = batch(producer_id=5, producer_epoch=0, base_sequence=7)
    received = framed(1, first, flexible=True) + framed(2, batch(**fields), flexible=True)
    assert len(ids(run_in(received))) == count


def test_sequences_of_a_run_wrap_around() -> None:
    """From 2^31 - 1 to 0."""
    first = batch(producer_id=5, producer_epoch=0, base_sequence=2**31 - 2)
    then = batch(producer_id=5, producer_epoch=0, base_sequence=1)
    assert ids(run_in(framed(1, first, flexible=True) + framed(2, then, flexible=True))) == [1, 2]


@given(st.binary(max_size=200), st.integers(0, 4))
def test_rubbish_is_no_run(rubbish: bytes, at: int) -> None:
    """Nor does it spoil the run before it."""
    usual = framed(1, batch(), flexible=True)
    assert ids(run_in(usual * at + rubbish)) == [1] * at
