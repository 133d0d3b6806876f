"""Spans of offsets in acknowledgements and acquired records."""

from collections.abc import Iterable

from ottla.base.errors import ErrorCode, OttlaError
from ottla.share.deliveries import Acknowledged, Acquired


def spans_of(batch: Acknowledged) -> list[tuple[int, int, int]]:
    """The (first, last, type) spans of an acknowledgement; neighbours of one type are joined.

    Raises OttlaError (INVALID_REQUEST).
    """
    first, last, types = batch
    size = last - first + 1
    if size <= 0 or len(types) not in (1, size):
        raise OttlaError(
            ErrorCode.INVALID_REQUEST,
            f"{len(types)} acknowledge types for the offsets {first} to {last}: there must be one, "
            "or one for each",
        )
    if len(types) == 1:
        return [(first, last, types[0])]
    spans: list[tuple[int, int, int]] = []
    for offset, kind in enumerate(types, first):
        if spans and spans[-1][2] == kind:
            spans[-1] = (spans[-1][0], offset, kind)
        else:
            spans.append((offset, offset, kind))
    return spans


def add_to(given: list[Acquired], taken: Iterable[Acquired], batch_size: int) -> None:
    """Append acquired records to `given`; neighbours with one delivery count are joined.

    A `batch_size` above 0 limits how many records are joined.
    """
    for each in taken:
        before = given[-1] if given else None
        if (
            before is not None
            and before.last + 1 == each.first
            and before.delivery_count == each.delivery_count
            and not 0 < batch_size <= before.last - before.first + 1
        ):
            given[-1] = before._replace(last=each.last)
        else:
            given.append(each)


def merged(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """The same offsets in order; spans that touch or overlap are joined."""
    found: list[tuple[int, int]] = []
    for first, last in sorted(spans):
        if found and first <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(last, found[-1][1]))
        else:
            found.append((first, last))
    return found
