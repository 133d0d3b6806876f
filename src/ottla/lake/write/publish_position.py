"""The position of a publish, at which the next run continues. Pure.

The position is a committed offset with metadata, of a group named like the publish. It is committed
in the transaction of the records before it.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass

from ottla.base.errors import ErrorCode, OttlaError
from ottla.client import OffsetAndMetadata

_KIND = "ottla publish"


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file of the source, by its path relative to the source's root."""

    path: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class PublishPosition:
    """Says that all earlier files and `row` rows of `file` are published: `records` records."""

    file: SourceFile
    row: int
    records: int
    before: str  # A digest of the paths of all files before it.


def position_at(files: Sequence[SourceFile], place: int, row: int, records: int) -> PublishPosition:
    """Return the position after `row` rows of the file at `place`."""
    return PublishPosition(files[place], row, records, _digest(files[:place]))


def as_offset(position: PublishPosition) -> OffsetAndMetadata:
    """Return the position as a committed offset: the number of records so far."""
    text = json.dumps(
        {
            "kind": _KIND,
            "file": position.file.path,
            "bytes": position.file.size_bytes,
            "row": position.row,
            "before": position.before,
        }
    )
    return OffsetAndMetadata(position.records, text)


def from_offset(offset: OffsetAndMetadata) -> PublishPosition:
    """Parse a committed offset as a position. Raises OttlaError if it is none."""
    try:
        found = json.loads(offset.metadata)
        if found["kind"] == _KIND:
            file = SourceFile(found["file"], int(found["bytes"]))
            return PublishPosition(file, int(found["row"]), offset.offset, found["before"])
    except (ValueError, KeyError, TypeError):
        pass
    raise OttlaError(
        ErrorCode.INVALID_REQUEST,
        f"the group of this publish has the offset {offset.offset} with the metadata "
        f"{offset.metadata!r}, which no publish wrote; choose another --name",
    )


def start_of(position: PublishPosition | None, files: Sequence[SourceFile]) -> tuple[int, int]:
    """Return the index of the file, and the row in it, to continue with.

    Raises OttlaError if the files up to the position are not the published ones.
    """
    if position is None:
        return 0, 0
    paths = [file.path for file in files]
    if position.file.path not in paths:
        raise _changed(f"{position.file.path}, which it had come to, is not there any more")
    place = paths.index(position.file.path)
    if _digest(files[:place]) != position.before:
        raise _changed(f"other files stand before {position.file.path} than it published")
    if files[place].size_bytes != position.file.size_bytes:
        raise _changed(
            f"{position.file.path} has {files[place].size_bytes} bytes now, "
            f"{position.file.size_bytes} before"
        )
    return place, position.row


def _digest(files: Sequence[SourceFile]) -> str:
    digest = hashlib.sha256()
    for file in files:
        digest.update(f"{file.path}\n{file.size_bytes}\n".encode())
    return digest.hexdigest()[:16]


def _changed(what: str) -> OttlaError:
    return OttlaError(
        ErrorCode.INVALID_REQUEST,
        f"the source has changed since the last publish: {what}. Nothing was published. Add files "
        "behind the others only, in the order of their names; or publish under another --name, "
        "which begins with the first row",
    )
