"""Batches of raw rows, and decoding in one line."""

from typing import Any

import pyarrow as pa

from ottla.lake.model.decode_spec import Decode, Format, columns
from ottla.lake.model.layout import TypedSchema
from ottla.lake.model.schema import ROW_SCHEMA
from ottla.lake.rows.decoder import Decoded, Decoder


def raw(values: list[bytes | None], keys: list[bytes | None] | None = None) -> pa.RecordBatch:
    """Rows at offsets from 0, in partition 0 of topic t."""
    count = len(values)
    return pa.RecordBatch.from_pydict(
        {
            "key": keys or [None] * count,
            "value": values,
            "headers": [[] for _ in values],
            "topic": ["t"] * count,
            "partition": [0] * count,
            "offset": list(range(count)),
            "timestamp": [0] * count,
            "timestamp_type": [0] * count,
        },
        schema=ROW_SCHEMA,
    )


def decoded(how: Format, values: list[bytes | None], **more: Any) -> Decoded:
    """Values decoded into the columns that the format declares."""
    schema = more.pop("schema", None) or TypedSchema(value=how.columns or ())
    return Decoder(Decode(value=how, **more), schema).decode(raw(values))


def of(kind: str, declared: dict[str, Any], **more: Any) -> Format:
    return Format(kind, columns(declared), **more)  # type: ignore[arg-type]


def lists(found: Decoded) -> list[list[Any]]:
    return [column.to_pylist() for column in found.columns]


def errors(found: Decoded) -> dict[int, str]:
    return {one.row: f"{one.stage}: {one.error}" for one in found.refused}
