"""Reads schemas from files."""

import base64
from pathlib import Path

from ottla.base.errors import WrongWords
from ottla.lake.decode.protoc import compiled_file
from ottla.lake.decode.reading import BadValue


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
