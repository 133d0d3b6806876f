"""Laws that hold for every message in every version, and for any bytes whatever."""

import random
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.wire.codec import decode, encode
from ottla.wire.errors import VersionError, WireError
from ottla.wire.notation import Message
from tests.unit.wire.every_message import classes, versions
from tests.unit.wire.message_maker import make, smallest

EVERY = pytest.mark.parametrize("cls", classes(), ids=lambda cls: cls.__name__)
# A decoded list of empty structs is the worst case: an object and a pointer for 2 or 3 bytes.
MEMORY_FACTOR_MAX = 64


@EVERY
@settings(max_examples=12, deadline=None, database=None)
@given(seed=st.integers(0, 2**32))
def test_decoding_gives_back_what_was_encoded(cls: type[Message], seed: int) -> None:
    """decode(encode(m)) == m, wherever it stands in whatever kind of buffer."""
    chance = random.Random(seed)
    for version in versions(cls):
        message = make(cls, version, chance)
        encoded = encode(message, version)
        assert decode(cls, version, encoded) == message
        assert decode(cls, version, bytearray(b"xyz" + encoded + b"rest"), 3) == message


@EVERY
@settings(max_examples=2, deadline=None, database=None)
@given(seed=st.integers(0, 2**32))
def test_a_message_cut_off_anywhere_is_refused(cls: type[Message], seed: int) -> None:
    """No proper prefix of a message is a message: each raises WireError."""
    chance = random.Random(seed)
    for version in versions(cls):
        encoded = memoryview(encode(make(cls, version, chance), version))
        step = 1 + len(encoded) // 60
        for end in range(0, len(encoded), step):
            with pytest.raises(WireError):
                decode(cls, version, encoded[:end])


@EVERY
@settings(max_examples=6, deadline=None, database=None)
@given(seed=st.integers(0, 2**32))
def test_changed_bytes_are_understood_or_refused(cls: type[Message], seed: int) -> None:
    """Bytes that were changed, inserted or dropped decode to something or raise WireError."""
    chance = random.Random(seed)
    for version in versions(cls):
        changed = bytearray(encode(make(cls, version, chance), version))
        for _ in range(chance.randint(1, 4)):
            place = chance.randrange(len(changed) + 1)
            edge = chance.choice(
                (b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", b"\x80", b"\x00", b"\xff")
            )
            changed[place : place + chance.randint(0, 4)] = edge
        try:
            decode(cls, version, changed)
        except WireError:
            continue


@EVERY
@settings(max_examples=20, deadline=None, database=None)
@given(noise=st.binary(max_size=300))
def test_noise_is_understood_or_refused(cls: type[Message], noise: bytes) -> None:
    """Any bytes at all decode to something or raise WireError."""
    for version in versions(cls):
        try:
            decode(cls, version, noise)
        except WireError:
            continue


@pytest.mark.parametrize("byte", [0, 1, 2, 3, 0x7F, 0xFF])
def test_hostile_bytes_cost_little_memory(byte: int) -> None:
    """However the lengths and counts read, decoding takes at most a multiple of the input."""
    size = 4096
    hostile = bytes([byte]) * size
    for cls in classes():
        for version in versions(cls):
            # Compiled beforehand, so that only decoding is measured.
            _decode_or_refuse(cls, version, b"")
            tracemalloc.start()
            _decode_or_refuse(cls, version, hostile)
            _, peak = tracemalloc.get_traced_memory()
            tracemalloc.stop()
            assert peak < MEMORY_FACTOR_MAX * size + 16_384, (cls.__name__, version, peak)


@EVERY
def test_many_empty_elements_cost_a_multiple_of_their_bytes(cls: type[Message]) -> None:
    """The worst a peer can do is a list of elements of 2 bytes; it stays within the factor."""
    for version in versions(cls):
        for field in cls.__fields__:
            if field.kind != "array" or not field.exists(version):
                continue
            message = cls(**{field.name: [smallest(field.element)] * 500})
            try:
                encoded = encode(message, version)
            except (TypeError, AttributeError, VersionError):
                continue  # Elements need values in this version: they are not small.
            tracemalloc.start()
            decode(cls, version, encoded)
            _, peak = tracemalloc.get_traced_memory()
            tracemalloc.stop()
            assert peak < MEMORY_FACTOR_MAX * len(encoded) + 16_384, (version, field.name, peak)


def _decode_or_refuse(cls: type[Message], version: int, buffer: bytes) -> Message | None:
    try:
        return decode(cls, version, buffer)
    except WireError:
        return None
