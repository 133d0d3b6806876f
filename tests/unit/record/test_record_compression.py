"""The five codecs, their framings, and the cap on what they may expand to."""

import gzip
import struct
import subprocess
import sys

import cramjam
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.base.errors import ErrorCode, OttlaError
from ottla.record.compression import Compression, CorruptBatch, compress, decompress

CODECS = [Compression.GZIP, Compression.SNAPPY, Compression.LZ4, Compression.ZSTD]
ZEROS = bytes(8 << 20)


@settings(deadline=None, max_examples=60)
@given(st.sampled_from(list(Compression)), st.binary(max_size=5000), st.integers(1, 30))
def test_what_was_compressed_expands_to_itself(codec, content, repeat) -> None:
    """Short, long, empty, compressible or not."""
    assert decompress(codec, compress(codec, content * repeat)) == content * repeat


@pytest.mark.parametrize("codec", CODECS)
def test_a_view_into_a_larger_buffer_is_read_in_place(codec: int) -> None:
    """A batch's payload is a slice of a request's buffer."""
    packed = bytearray(b"before" + compress(codec, memoryview(b"content" * 9)) + b"after")
    assert decompress(codec, memoryview(packed)[6:-5]) == b"content" * 9


def test_snappy_is_written_in_the_framing_of_the_java_client() -> None:
    """Magic, version 1, compatible with 1, then blocks of 32 KiB with their sizes."""
    packed = compress(Compression.SNAPPY, bytes(70_000))
    assert packed[:16].hex() == "82534e4150505900" + "00000001" * 2
    sizes = []
    position = 16
    while position < len(packed):
        (size,) = struct.unpack_from(">i", packed, position)
        block = packed[position + 4 : position + 4 + size]
        sizes.append(cramjam.snappy.decompress_raw_len(block))
        position += 4 + size
    assert sizes == [32_768, 32_768, 4_464]


def test_snappy_without_framing_is_read() -> None:
    """Some clients write one raw block."""
    assert decompress(Compression.SNAPPY, cramjam.snappy.compress_raw(b"raw" * 50)) == b"raw" * 50


def test_lz4_frames_have_independent_blocks() -> None:
    """Java's reader refuses frames whose blocks refer to earlier ones: bit 5 of the flags."""
    packed = compress(Compression.LZ4, bytes(300_000))
    assert packed[:4].hex() == "04224d18"
    assert packed[4] & 0b1110_0000 == 0b0110_0000


def test_gzip_of_several_members_is_read() -> None:
    """RFC 1952, 2.2: members stand one after another."""
    packed = gzip.compress(b"one, ") + gzip.compress(b"two")
    assert decompress(Compression.GZIP, packed) == b"one, two"


@pytest.mark.parametrize("codec", CODECS)
def test_levels_change_the_bytes_but_not_the_content(codec: int) -> None:
    """`compression.*.level` reaches the codec (snappy has none)."""
    content = b"".join(b"%d" % (index * index) for index in range(20_000))
    fast = compress(codec, content, 1)
    slow = compress(codec, content, 8)
    assert (fast == slow) is (codec == Compression.SNAPPY)
    assert decompress(codec, fast) == decompress(codec, slow) == content


def test_the_default_levels_are_kafkas() -> None:
    """KIP-390: gzip -1, zstd 3, and lz4 9, by which Kafka means its fast compressor."""
    content = b"".join(b"%d" % (index * index) for index in range(20_000))
    assert compress(Compression.GZIP, content) == compress(Compression.GZIP, content, -1)
    assert compress(Compression.ZSTD, content) == compress(Compression.ZSTD, content, 3)
    fast = compress(Compression.LZ4, content)
    assert fast == compress(Compression.LZ4, content, 9)
    assert len(fast) > len(compress(Compression.LZ4, content, 8))


@pytest.mark.parametrize("codec", [5, 6, 7, -1])
def test_an_unknown_codec_is_refused_by_its_number(codec: int) -> None:
    """Three bits leave room for three codecs that do not exist."""
    for attempt in (compress, decompress):
        with pytest.raises(OttlaError, match=f"codec {codec}") as refused:
            attempt(codec, b"")
        assert refused.value.code is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


@pytest.mark.parametrize("codec", CODECS)
def test_the_cap_is_exact(codec: int) -> None:
    """One byte more than allowed is refused, the allowed number is not."""
    packed = compress(codec, ZEROS)
    assert decompress(codec, packed, len(ZEROS)) == ZEROS
    with pytest.raises(CorruptBatch, match=f"more than {len(ZEROS) - 1} bytes"):
        decompress(codec, packed, len(ZEROS) - 1)


@pytest.mark.parametrize("codec", CODECS)
def test_truncated_or_empty_input_is_corrupt(codec: int) -> None:
    """No codec takes a part for the whole."""
    packed = compress(codec, b"content, some of it random: 1829304758" * 20)
    for cut in (0, 1, 5, len(packed) // 2, len(packed) - 1):
        with pytest.raises(CorruptBatch):
            decompress(codec, packed[:cut])


def test_a_snappy_block_that_lies_about_its_size_is_corrupt() -> None:
    """Sizes of xerial's framing: zero, negative, beyond the end, and of the expanded block."""
    frame = bytes.fromhex("82534e4150505900" + "00000001" * 2)
    for size in (0, -1, 5, 2**31 - 1):
        with pytest.raises(CorruptBatch):
            decompress(Compression.SNAPPY, frame + struct.pack(">i", size) + b"abc")
    claims_4_gib = b"\xff\xff\xff\xff\x0f" + b"abc"
    with pytest.raises(CorruptBatch, match="more than"):
        decompress(Compression.SNAPPY, claims_4_gib)


BOMBS = """
import resource, sys
from ottla.record.compression import CorruptBatch, compress, decompress

def bomb(codec):
    # Zeros in small pieces: each codec allows its stream to be continued.
    if codec == 2:
        block = compress(codec, bytes(1 << 20))
        return block[:16] + block[16:] * 1024
    return bytes(compress(codec, bytes(1 << 20))) * 1024

bombs = {codec: bomb(codec) for codec in (1, 2, 3, 4)}
idle = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for codec, packed in bombs.items():
    try:
        decompress(codec, packed)
    except CorruptBatch as refused:
        assert "expands to more than 33554432 bytes" in str(refused), refused
    else:
        sys.exit(f"codec {codec} expanded a bomb")
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - idle)
"""


def test_bombs_of_a_gibibyte_are_refused_within_64_mebibytes() -> None:
    """Each codec expands zeros 20 to 30,000 times; the cap is on the output."""
    done = subprocess.run(
        [sys.executable, "-c", BOMBS], capture_output=True, text=True, check=True, timeout=60
    )
    assert int(done.stdout) * 1024 <= 64 << 20
