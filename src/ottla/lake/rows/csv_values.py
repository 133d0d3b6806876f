"""Reads CSV: one value is one line, whose fields are identified by their order."""

import csv
import io
from collections.abc import Sequence
from typing import Any

from ottla.lake.model.decode_spec import Csv
from ottla.lake.model.types import Type
from ottla.lake.rows.field_reader import BadValue

# A record's value has at most some megabytes; Python's limit of 131,072 would refuse some.
_FIELD_SIZE_MAX = 1 << 30


class CsvReader:
    """Reads a line into an object of texts by the names of the fields."""

    type: Type | None = None

    def __init__(self, names: Sequence[str], how: Csv) -> None:
        self._names = names
        self._how = how
        csv.field_size_limit(_FIELD_SIZE_MAX)

    def read(self, content: bytes) -> Any:
        try:
            lines = csv.reader(
                io.StringIO(content.decode(), newline=""),
                delimiter=self._how.delimiter,
                quotechar=self._how.quote,
                strict=True,
            )
            found = [line for line in lines if line]
        except (UnicodeDecodeError, csv.Error) as error:
            raise BadValue(f"no CSV: {error}") from None
        if len(found) != 1:
            raise BadValue(f"it holds {len(found)} lines of CSV, not one")
        (fields,) = found
        if len(fields) != len(self._names):
            raise BadValue(f"it has {len(fields)} fields, not {len(self._names)}")
        null = self._how.null
        return {
            name: None if text == null else text
            for name, text in zip(self._names, fields, strict=True)
        }


class TextReader:
    """Reads UTF-8."""

    type: Type | None = Type("string")

    def read(self, content: bytes) -> Any:
        try:
            return content.decode()
        except UnicodeDecodeError as error:
            raise BadValue(f"no UTF-8: {error}") from None


class BytesReader:
    """Leaves bytes as they are."""

    type: Type | None = Type("binary")

    def read(self, content: bytes) -> Any:
        return content
