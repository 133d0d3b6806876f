"""The five codecs of a record batch, with a limit on the output.

Codec numbers are those of the batch's attributes (Kafka documentation, "Record Batch"). The output
buffer is never larger than the limit, so that a decompression bomb is refused before it expands.
Levels are Kafka's (KIP-390); None means Kafka's default for the codec.
"""

import zlib
from collections.abc import Callable
from enum import IntEnum
from struct import Struct
from typing import Any

from ottla.base.errors import ErrorCode, OttlaError

# The most bytes to which a batch may expand, unless the caller gives a limit.
MAX_EXPANDED_BYTES = 32 << 20
# A client's batch may expand to this size at little cost, or to a multiple of its own size.
EXPANDED_FREE_BYTES = 1 << 20
EXPANDED_RATIO_MAX = 1000

Buffer = bytes | bytearray | memoryview

_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER = _XERIAL_MAGIC + b"\x00\x00\x00\x01\x00\x00\x00\x01"
_XERIAL_BLOCK_BYTES = 32 * 1024
_SIZE = Struct(">i")
# zlib's parameter for "with gzip's header and trailer".
_GZIP_WINDOW = 31
# Kafka's default level 9 for lz4 means the fast compressor, not level nine.
_LZ4_DEFAULT_LEVEL = 9
_LZ4_FAST = 1
_SCRATCH_BYTES = 1 << 20
# Reused output buffers, as many as threads ever expanded at the same time. Zeroing a new one per
# batch would take longer than expanding the batch.
_scratches: list[bytearray] = []


class Compression(IntEnum):
    """A codec's number in the batch attributes; its lower-case name is the setting's value."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4

    @property
    def setting(self) -> str:
        """The name used by `compression.type`."""
        return self.name.lower()


class CorruptBatch(OttlaError):
    """The bytes are not a valid record batch."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.CORRUPT_MESSAGE, message)


def _cramjam() -> Any:
    """Return the library of all codecs but gzip, loaded on first use.

    It takes 1.6 MB of memory, and many brokers have no compressed topic.
    """
    import cramjam  # noqa: PLC0415

    return cramjam


def compress(codec: int, payload: Buffer, level: int | None = None) -> Buffer:
    """Compress `payload` with `codec` (codec 0 returns the same object)."""
    match codec:
        case Compression.NONE:
            return payload
        case Compression.GZIP:
            return zlib.compress(payload, -1 if level is None else level, _GZIP_WINDOW)
        case Compression.SNAPPY:
            return _compress_xerial(payload)
        case Compression.LZ4:
            speed = _LZ4_FAST if level in (None, _LZ4_DEFAULT_LEVEL) else level
            # Java's reader refuses frames whose blocks refer to earlier blocks.
            frame = _cramjam().lz4.Compressor(speed, content_checksum=False, block_linked=False)
            frame.compress(payload if isinstance(payload, bytes) else bytes(payload))
            return bytes(frame.finish())
        case Compression.ZSTD:
            return bytes(_cramjam().zstd.compress(payload, level=3 if level is None else level))
    raise unknown_codec(codec)


# The magic bytes of the codecs' formats. Raw snappy begins with a length, which may be anything.
_MAGICS = {
    Compression.GZIP: b"\x1f\x8b",
    Compression.LZ4: b"\x04\x22\x4d\x18",
    Compression.ZSTD: b"\x28\xb5\x2f\xfd",
}


def check_magic(codec: int, payload: memoryview) -> None:
    """Raise CorruptBatch if the first bytes of `payload` cannot be the codec's."""
    magic = _MAGICS.get(Compression(codec))
    if magic is not None and payload[: len(magic)] != magic:
        raise CorruptBatch(f"the batch says {Compression(codec).setting} and holds something else")


def decompress(codec: int, payload: Buffer, max_bytes: int = MAX_EXPANDED_BYTES) -> Buffer:
    """Decompress `payload` (codec 0 returns the same object).

    Raises CorruptBatch if the bytes are not the codec's, or expand to more than `max_bytes`.
    """
    match codec:
        case Compression.NONE:
            return payload
        case Compression.GZIP:
            return _decompress_gzip(payload, max_bytes)
        case Compression.SNAPPY:
            return _decompress_snappy(payload, max_bytes)
        case Compression.LZ4:
            return _expand(_cramjam().lz4.decompress_into, payload, max_bytes, "lz4")
        case Compression.ZSTD:
            return _expand(_cramjam().zstd.decompress_into, payload, max_bytes, "zstd")
    raise unknown_codec(codec)


def expanded_bytes_max(size_bytes: int) -> int:
    """The limit to which a client's batch of `size_bytes` may expand in a leader's checks."""
    return min(MAX_EXPANDED_BYTES, EXPANDED_FREE_BYTES + EXPANDED_RATIO_MAX * size_bytes)


def unknown_codec(codec: int) -> OttlaError:
    """The error for the undefined codec numbers 5 to 7."""
    return OttlaError(
        ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
        f"compression codec {codec} is not known; use none, gzip, snappy, lz4 or zstd",
    )


def _expand(
    decompress_into: Callable[[Buffer, Buffer], int],
    payload: Buffer,
    max_bytes: int,
    name: str,
) -> bytes:
    """Decompress into a buffer that grows by factors of four up to `max_bytes`."""
    try:
        scratch = _scratches.pop()
    except IndexError:
        scratch = bytearray(_SCRATCH_BYTES)
    room = min(max_bytes, _SCRATCH_BYTES)
    output = memoryview(scratch)[:room]
    try:
        while True:
            try:
                return bytes(output[: decompress_into(payload, output)])
            except _cramjam().DecompressionError as error:
                if "whole buffer" not in str(error):
                    raise CorruptBatch(f"{name} data does not expand: {error}") from error
                if room >= max_bytes:
                    raise _too_large(name, max_bytes) from error
            room = min(max_bytes, room * 4)
            output = memoryview(b"")
            output = memoryview(bytearray(room))
    finally:
        _scratches.append(scratch)


def _too_large(name: str, max_bytes: int) -> CorruptBatch:
    return CorruptBatch(f"{name} data expands to more than {max_bytes} bytes")


def _decompress_gzip(payload: Buffer, max_bytes: int) -> bytes:
    """Decompress the single member that clients write; leave several members to cramjam.

    Python's zlib is faster, but copies the bytes that follow each member. Its time grows with the
    square of the number of members, which a peer chooses.
    """
    member = zlib.decompressobj(_GZIP_WINDOW)
    try:
        # One byte more than allowed shows whether the records fit.
        content = member.decompress(payload, max_bytes + 1)
    except zlib.error as error:
        raise CorruptBatch(f"gzip data does not expand: {error}") from error
    if len(content) > max_bytes:
        raise _too_large("gzip", max_bytes)
    if not member.eof:
        raise CorruptBatch("gzip data ends within itself")
    if member.unused_data:
        return _expand(_cramjam().gzip.decompress_into, payload, max_bytes, "gzip")
    return content


def _compress_xerial(payload: Buffer) -> bytes:
    """Compress to Snappy blocks of 32 KiB in xerial's framing, as Java clients write them."""
    parts: list[bytes] = [_XERIAL_HEADER]
    view = memoryview(payload)
    for start in range(0, len(view), _XERIAL_BLOCK_BYTES):
        block = bytes(_cramjam().snappy.compress_raw(view[start : start + _XERIAL_BLOCK_BYTES]))
        parts.append(_SIZE.pack(len(block)))
        parts.append(block)
    return b"".join(parts)


def _decompress_snappy(payload: Buffer, max_bytes: int) -> Buffer:
    """Decompress xerial's framing, or a single raw block, which librdkafka may write."""
    view = memoryview(payload)
    if view[: len(_XERIAL_MAGIC)] != _XERIAL_MAGIC:
        return _expand_snappy_block(view, max_bytes, 0)
    if len(view) < len(_XERIAL_HEADER):
        raise CorruptBatch("snappy data ends within its header")
    output = bytearray()
    position = len(_XERIAL_HEADER)
    while position < len(view):
        if position + 4 > len(view):
            raise CorruptBatch("snappy data ends within a block's size")
        (size,) = _SIZE.unpack_from(view, position)
        position += 4
        if size <= 0 or position + size > len(view):
            raise CorruptBatch(f"snappy block of {size} bytes does not fit its data")
        output += _expand_snappy_block(view[position : position + size], max_bytes, len(output))
        position += size
    return output


def _expand_snappy_block(block: memoryview, max_bytes: int, size_before: int) -> bytearray:
    """Decompress one raw block, which begins with its expanded size.

    `size_before` is the size of the output so far, which counts towards `max_bytes`.
    """
    try:
        size = _cramjam().snappy.decompress_raw_len(block)
        if size > max_bytes - size_before:
            raise _too_large("snappy", max_bytes)
        output = bytearray(size)
        written = _cramjam().snappy.decompress_raw_into(block, output)
    except _cramjam().DecompressionError as error:
        raise CorruptBatch(f"snappy data does not expand: {error}") from error
    del output[written:]
    return output
