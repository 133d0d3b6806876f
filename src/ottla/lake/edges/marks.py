"""The mark of a series: the number of the portion that was committed last. Pure.

The mark is a committed offset with metadata, of a group of the series' own name, and is committed
in the transaction of its portion. So a portion that is sent again, after any crash, is recognised.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum, auto

from ottla.base.errors import ErrorCode, OttlaError
from ottla.client import OffsetAndMetadata

_KIND = "ottla sink"
# Prefix of the name of a series, before the id of a query or of a batch.
SERIES_OF_QUERY = "ottla-sink."


@dataclass(frozen=True, slots=True)
class PortionMark:
    """Records that portion `number` of a series is committed; it had `records` records.

    `first` is the option `firstEpoch` that the series has already followed.
    """

    number: int
    records: int
    first: int | None = None


class PortionState(Enum):
    """Says whether a portion has to be written."""

    NEW = auto()
    COMMITTED = auto()


def as_offset(mark: PortionMark) -> OffsetAndMetadata:
    """Return the mark as a committed offset: the number of the next portion."""
    content = {"kind": _KIND, "number": mark.number, "records": mark.records}
    if mark.first is not None:
        content["first"] = mark.first
    return OffsetAndMetadata(mark.number + 1, json.dumps(content))


def newest(committed: Iterable[OffsetAndMetadata]) -> PortionMark | None:
    """Return the newest mark among a group's offsets. Raises OttlaError for other offsets."""
    marks = [_from_offset(offset) for offset in committed]
    return max(marks, key=lambda mark: mark.number, default=None)


def _from_offset(offset: OffsetAndMetadata) -> PortionMark:
    try:
        found = json.loads(offset.metadata)
        if found["kind"] == _KIND and found["number"] == offset.offset - 1:
            return PortionMark(int(found["number"]), int(found["records"]), found.get("first"))
    except (ValueError, KeyError, TypeError):
        pass
    raise OttlaError(
        ErrorCode.INVALID_REQUEST,
        f"a group of the sink's has the committed offset {offset.offset} with the metadata "
        f"{offset.metadata!r}, which the sink did not write. Delete the group's offsets where they "
        "were set by mistake (`ottla group reset` shows them), and name the epoch to go on with "
        'by .option("firstEpoch", "QUERY:N")',
    )


def standing(mark: PortionMark | None, number: int, first: int | None, series: str) -> PortionState:
    """Return whether portion `number` is new. `first` needs no mark before it.

    `first` applies once: if the mark has followed it, it is a leftover in a program. Spark plans an
    epoch only after the previous one is committed, so a portion must be the marked one or the next.
    Raises OttlaError for any other, because a part of the series would be missing or doubled.
    """
    if mark is not None and mark.number == number:
        return PortionState.COMMITTED
    if first is not None and number <= first and (mark is None or mark.first != first):
        return PortionState.NEW if number == first else PortionState.COMMITTED
    if number == (0 if mark is None else mark.number + 1):
        return PortionState.NEW
    if mark is None:
        found = (
            f"no mark of {series} is there. The brokers forget it offsets.retention.minutes after "
            "the last epoch, or this checkpoint was begun with another sink"
        )
    elif mark.number > number:
        found = (
            f"the mark of {series} is already at epoch {mark.number}: the checkpoint is an old copy"
        )
    else:
        found = (
            f"the mark of {series} is at epoch {mark.number}: epochs after it were not written here"
        )
    query = series.removeprefix(SERIES_OF_QUERY)
    raise OttlaError(
        ErrorCode.INVALID_REQUEST,
        f"epoch {number} was not written, since it is not known whether the topic has it: {found}. "
        "Look at the topic's newest records, then name the first epoch that the topic does not "
        f'have: .option("firstEpoch", "{query}:{number}"), or "{query}:{number + 1}" to leave this '
        "one out",
    )
