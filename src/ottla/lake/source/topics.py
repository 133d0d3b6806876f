"""Chooses the topics that a query reads, by its options."""

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from ottla.base.errors import ErrorCode, OttlaError
from ottla.lake.model.plan import Boundary
from ottla.lake.source.source_options import Boundaries, StreamOptions, wrong

T = TypeVar("T")


def chosen(options: StreamOptions, names: Iterable[str]) -> list[str]:
    """Return the topics to read, in order. `names`, all topics, are needed only for a pattern.

    Raises OttlaError INVALID_REGULAR_EXPRESSION.
    """
    if options.topics or options.assigned:
        return sorted(options.topics or options.assigned or ())
    pattern = _compiled(options.topic_pattern or "")
    return sorted(name for name in names if pattern.fullmatch(name))


def _compiled(pattern: str) -> Any:
    import re2  # noqa: PLC0415  # Few queries have a pattern.

    settings = re2.Options()
    settings.log_errors = False
    try:
        return re2.compile(pattern, settings)
    except re2.error as error:
        raise OttlaError(
            ErrorCode.INVALID_REGULAR_EXPRESSION,
            f"data source ottla: subscribePattern `{pattern}` is no regular expression of RE2: "
            f"{error}",
        ) from error


def boundaries(place: Boundaries, topics: Iterable[str]) -> Mapping[str, Boundary]:
    """Return the start or end in each topic. Raises OttlaError for a named topic that is not read.

    Topics that are not named get the default.
    """
    names = list(topics)
    unknown = sorted(place.by_topic.keys() - names)
    if unknown:
        wrong(f"where the topic {unknown[0]!r} is to be read is said, but it is not read")
    default = place.everywhere or Boundary("offsets", offsets={})
    return {name: place.by_topic.get(name, default) for name in names}


def assigned(topic: str, found: Mapping[int, T], options: StreamOptions) -> dict[int, T]:
    """Return the entries of `found` for the partitions to read. Raises OttlaError."""
    if options.assigned is None:
        return dict(found)
    missing = sorted(options.assigned[topic] - found.keys())
    if missing:
        wrong(f"topic {topic} has no partition {missing[0]}, which assign names")
    return {number: one for number, one in found.items() if number in options.assigned[topic]}
