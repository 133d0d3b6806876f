"""The hash under a key is SipHash-2-4 with 128 bits, in C as in numpy."""

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.lake.model import row_hash

MASK = (1 << 64) - 1
# Aumasson and Bernstein, "SipHash: a fast short-input PRF" (2012): key and strings of their
# vectors, results of the 128-bit form of their reference.
KEY = bytes(range(16))
VECTORS = (
    (b"", "a3817f04ba25a8e66df67214c7550293"),
    (b"\x00", "da87c1d86b99af44347659119b22fc45"),
    (b"\x00\x01", "8177228da4a45dc7fca38bdef60affe4"),
)


@pytest.fixture(params=["c", "numpy"])
def form(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Each test of it runs on both."""
    if request.param == "c" and not row_hash._in_c:
        pytest.skip("no loops in C here: no C compiler, or `make venv` has not run")
    monkeypatch.setattr(row_hash, "_in_c", request.param == "c")
    return str(request.param)


def hashed(strings: list[bytes], key: bytes = KEY) -> list[bytes]:
    """The hash of each string, as the reference writes it."""
    content = np.frombuffer(b"".join(strings), np.uint8)
    offsets = np.cumsum([0, *map(len, strings)]).astype(np.int64)
    low, high = row_hash.keyed_hashes(content, offsets, key)
    return [struct.pack("<QQ", int(a), int(b)) for a, b in zip(low, high, strict=True)]


def sip_round(v: list[int]) -> None:
    """The round of the paper's figure 2.1."""
    turn = lambda x, bits: (x << bits | x >> (64 - bits)) & MASK  # noqa: E731
    v[0] = (v[0] + v[1]) & MASK
    v[1] = turn(v[1], 13) ^ v[0]
    v[0] = turn(v[0], 32)
    v[2] = (v[2] + v[3]) & MASK
    v[3] = turn(v[3], 16) ^ v[2]
    v[0] = (v[0] + v[3]) & MASK
    v[3] = turn(v[3], 21) ^ v[0]
    v[2] = (v[2] + v[1]) & MASK
    v[1] = turn(v[1], 17) ^ v[2]
    v[2] = turn(v[2], 32)


def reference(text: bytes, key: bytes) -> bytes:
    """One string after another, in Python's own numbers."""
    a, b = struct.unpack("<QQ", key)
    v = [a ^ 0x736F6D6570736575, b ^ 0x646F72616E646F6D ^ 0xEE]
    v += [a ^ 0x6C7967656E657261, b ^ 0x7465646279746573]
    padded = text + bytes(7 - len(text) % 8) + bytes([len(text) % 256])
    for (word,) in struct.iter_unpack("<Q", padded):
        v[3] ^= word
        sip_round(v)
        sip_round(v)
        v[0] ^= word
    halves = []
    for place, number in ((2, 0xEE), (1, 0xDD)):
        v[place] ^= number
        for _ in range(4):
            sip_round(v)
        halves.append(v[0] ^ v[1] ^ v[2] ^ v[3])
    return struct.pack("<QQ", *halves)


@pytest.mark.usefixtures("form")
def test_vectors_of_the_reference() -> None:
    """Its own results."""
    assert [one.hex() for one in hashed([text for text, _ in VECTORS])] == [
        wanted for _, wanted in VECTORS
    ]


@pytest.mark.parametrize("in_c", [True, False])
@given(
    strings=st.lists(st.binary(max_size=70), max_size=8), key=st.binary(min_size=16, max_size=16)
)
def test_any_strings_hash_as_one_by_one(in_c: bool, strings: list[bytes], key: bytes) -> None:
    """Whatever their lengths, beside each other and one by one."""
    before = row_hash._in_c
    row_hash._in_c = in_c and before
    try:
        assert hashed(strings, key) == [reference(text, key) for text in strings]
    finally:
        row_hash._in_c = before


@pytest.mark.usefixtures("form")
def test_strings_may_lie_anywhere_in_the_content() -> None:
    """As in a slice of an Arrow column."""
    content = np.frombuffer(b"xxabcdefghijkyy", np.uint8)
    low, high = row_hash.keyed_hashes(content, np.array([2, 5, 13], np.int64), KEY)
    found = [struct.pack("<QQ", int(a), int(b)) for a, b in zip(low, high, strict=True)]
    assert found == [reference(b"abc", KEY), reference(b"defghijk", KEY)]
