"""Reads schemas from files."""

import base64
from pathlib import Path

from ottla.base.errors import WrongWords
from ottla.lake.rows.field_reader import BadValue
from ottla.lake.rows.protoc import compiled_file


def schema_text(path: Path, kind: str) -> str:
    """Return the schema of a file for `Format.schema`. `kind`: avro, debezium-avro or protobuf.

    Raises OttlaError.
    """
    try:
        if kind == "protobuf":
            return base64.b64encode(compiled_file(path)).decode()
        return path.read_text()
    except (BadValue, OSError, UnicodeDecodeError) as error:
        raise WrongWords(f"the schema in {path} can't be used: {error}") from None
