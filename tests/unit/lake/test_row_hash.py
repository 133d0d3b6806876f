"""The row hash agrees with its specification and does not care about order or splits."""

import itertools
import os
import random
import subprocess
import sys

import numpy as np
import pytest

from ottla.lake.model import row_hash
from ottla.lake.model.row_hash import MODULUS, NULL_LENGTH, bytes_sums, hash_text, rows_hash

M64 = (1 << 64) - 1
VECTOR = "2df06a66ca7591159fd46658e287e9ef"


@pytest.fixture(params=["in C", "numpy"], autouse=True)
def form(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every law holds of both forms of the loops."""
    if request.param == "in C" and not row_hash._in_c:
        pytest.skip("no loops in C here: no C compiler, or `make venv` has not run")
    monkeypatch.setattr(row_hash, "_in_c", request.param == "in C")


def mix(x: int) -> int:
    x ^= x >> 32
    x = x * 0xD6E8FEB86659FD93 & M64
    return x ^ (x >> 32)


def key_a(i: int) -> int:
    return mix(mix((2 * (i % 4096) + 1) * 0x9E3779B97F4A7C15 & M64))


def key_b(i: int) -> int:
    return mix(mix((2 * (i % 4096) + 2) * 0x9E3779B97F4A7C15 & M64)) | 1


def spec_sums(content: bytes) -> tuple[int, int]:
    s = t = 0
    for i in range((len(content) + 7) // 8):
        word = int.from_bytes(content[8 * i : 8 * i + 8].ljust(8, b"\0"), "little")
        m = mix(word ^ (key_a(i) + i // 4096 & M64))
        s, t = s + m & M64, t + m * key_b(i) & M64
    return s, t


def spec_row(words: list[int]) -> int:
    u = v = 0
    for j, x in enumerate(words):
        u = mix(u ^ x) + key_a(j) & M64
        v = (v + u) * key_b(j) & M64
    return mix(u) + (mix(v) << 64)


def strings_sums(strings: list[bytes]) -> list[tuple[int, int]]:
    offsets = np.cumsum([0, *map(len, strings)], dtype=np.int64)
    s, t = bytes_sums(np.frombuffer(b"".join(strings), np.uint8), offsets)
    return [(int(a), int(b)) for a, b in zip(s, t, strict=True)]


@pytest.mark.parametrize(
    "lengths", [[100] * 5, [0, 1, 7, 8, 9, 0, 63], [40_000, 70_003], [0, 0], []]
)
def test_sums_follow_the_specification(lengths: list[int]) -> None:
    """Equal and unequal lengths, empty strings and more than 4096 words give the spec's sums."""
    chance = random.Random(7)
    strings = [chance.randbytes(length) for length in lengths]

    assert strings_sums(strings) == [spec_sums(s) for s in strings]


def test_many_equal_strings_follow_the_specification() -> None:
    """More words than are hashed in one go, of a length that leaves half a word over."""
    chance = random.Random(9)
    strings = [chance.randbytes(100) for _ in range(6000)]

    sums = strings_sums(strings)
    picked = [0, 1, 2519, 2520, 2521, 5039, 5040, 5041, 5998, 5999]
    assert [sums[n] for n in picked] == [spec_sums(strings[n]) for n in picked]


def test_bytes_behind_the_last_string_do_not_count() -> None:
    """What follows in the buffer is read with the last word, and masked away."""
    content = np.frombuffer(b"abcdefghijk" + b"\xff" * 20, np.uint8)
    for offsets in ([0, 11], [0, 4, 11], [3, 6, 9]):
        s, t = bytes_sums(content, np.array(offsets, np.int64))
        strings = [content.tobytes()[a:b] for a, b in itertools.pairwise(offsets)]
        assert list(zip(s.tolist(), t.tolist(), strict=True)) == [spec_sums(x) for x in strings]


def test_rows_follow_the_specification_and_add_up() -> None:
    """A set's hash is the sum of its rows' hashes, however the set is cut or ordered."""
    chance = random.Random(8)
    rows = [[chance.getrandbits(64) for _ in range(13)] for _ in range(50)]
    columns = [np.array(column, dtype=np.uint64) for column in zip(*rows, strict=True)]

    whole = rows_hash(columns)
    assert whole == sum(map(spec_row, rows)) % MODULUS
    assert (
        whole
        == (rows_hash([c[:17] for c in columns]) + rows_hash([c[17:] for c in columns])) % MODULUS
    )
    assert whole == rows_hash([c[::-1].copy() for c in columns])


def test_vector() -> None:
    """A frozen vector: partition 1, offset 2, time 3 (create), key "k", value "value"."""
    s_key, t_key = spec_sums(b"k")
    s_value, t_value = spec_sums(b"value")
    words = [1, 2, 3, 0, 1, s_key, t_key, 5, s_value, t_value, 0, 0, 0]

    got = rows_hash([np.array([w], dtype=np.uint64) for w in words])
    assert hash_text(got) == VECTOR


def test_null_differs_from_empty() -> None:
    empty = [np.array([0], np.uint64)] * 13
    null = [*empty[:4], np.array([NULL_LENGTH]), *empty[5:]]

    assert rows_hash(empty) != rows_hash(null)


def test_every_single_bit_matters() -> None:
    """Flipping any bit of a value changes the row, also top bits of two words at once."""
    value = bytes(range(40))
    seen = {spec_sums(value)}
    for bit in range(8 * len(value)):
        flipped = (int.from_bytes(value, "little") ^ (1 << bit)).to_bytes(len(value), "little")
        seen.update(strings_sums([flipped]))
    both = bytearray(value)
    both[7] ^= 0x80
    both[15] ^= 0x80
    seen.update(strings_sums([bytes(both)]))
    assert len(seen) == 8 * len(value) + 2


def test_a_string_that_is_not_within_the_content_is_refused() -> None:
    """The loops in C read nothing behind an array, whatever the offsets say."""
    in_c = pytest.importorskip("ottla.lake._row_sums")
    keys, sums = np.zeros(4096, np.uint64), np.zeros(2, np.uint64)
    for offsets in ([0, 8, 17], [0, 0, 1 << 40], [-8, 8, 8], [0, 12, 8]):
        bounds = np.array(offsets, np.int64)
        with pytest.raises(ValueError, match="is not within the content"):
            in_c.bytes_sums(bytes(16), bounds, keys, keys, sums, sums.copy())
    for short in (keys[:-1], sums):
        with pytest.raises(ValueError, match="other lengths"):
            in_c.bytes_sums(bytes(16), np.zeros(3, np.int64), short, keys, sums, sums.copy())
    with pytest.raises(ValueError, match="other lengths"):
        in_c.mix_in(sums[:1], 1, 1, sums, sums.copy())


def test_without_what_was_compiled_numpy_does_it() -> None:
    """Where the plain form is asked for, the loops in C are as if they were not installed."""
    code = "from ottla.lake.model import row_hash; print(row_hash._in_c)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        check=True,
        capture_output=True,
        text=True,
        env=os.environ | {"OTTLA_PURE": "1"},
    )
    assert done.stdout == "False\n"
