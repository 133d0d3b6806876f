"""Which columns of a file are compressed: those of bytes only where they get smaller by it.

To try costs a tenth of a file's encoding, and readers spare the expansion. Pure.
"""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

# Spark's default: the fastest where values are already compressed or encrypted. zstd makes JSON
# smaller by four tenths more, for a tenth more of the time; random bytes take it twice the time.
CODEC = "snappy"
_SAMPLED = ("key", "value")
_SAMPLES = 8
_SAMPLE_BYTES = 8 << 10
_ENOUGH_BYTES = 4 << 10
# What is left of a sample that is not worth it.
_SMALLER = 0.95


def codecs(group: pa.Table) -> str | dict[str, str]:
    """The codec of a file, or of each of its columns, by its first row group."""
    if any(pa.types.is_nested(one.type) for one in group.schema if one.name != "headers"):
        return CODEC  # Their fields would all have to be named.
    plain = [name for name in _SAMPLED if name in group.schema.names and _stays(group.column(name))]
    if not plain:
        return CODEC
    paths = [path for one in group.schema for path in _paths(one)]
    return {path: "none" if path in plain else CODEC for path in paths}


def _paths(column: pa.Field) -> list[str]:
    if column.name == "headers":
        return [f"headers.list.element.{name}" for name in ("key", "value")]
    return [column.name]


def _stays(column: Any) -> bool:
    """Whether samples from all over a column get no smaller."""
    sample = b"".join(_samples(column))
    if len(sample) < _ENOUGH_BYTES:
        return False
    return len(pa.compress(sample, codec=CODEC, asbytes=True)) > _SMALLER * len(sample)


def _samples(column: Any) -> Iterator[bytes]:
    step = max(1, column.num_chunks // _SAMPLES)
    per_chunk = -(-_SAMPLES * step // column.num_chunks)
    for number in range(0, column.num_chunks, step):
        content = column.chunk(number).buffers()[2]
        size = content.size if content is not None else 0
        for part in range(per_chunk):
            at = size * part // per_chunk
            yield (
                content[at : at + min(_SAMPLE_BYTES, size // per_chunk)].to_pybytes()
                if size
                else b""
            )
