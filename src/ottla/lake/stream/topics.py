"""Which topics a query reads, by the options."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from ottla.base.errors import ErrorCode, OttlaError
from ottla.lake.plan import Boundary, parse_boundary
from ottla.lake.stream.options import SourceOptions, wrong

_OF_TOPIC = re.compile(r"([A-Za-z0-9._-]+)-(\d+):(-?\d+)")


def chosen(options: SourceOptions, names: Iterable[str]) -> list[str]:
    """The topics to read, in order. `names`, all topics of the cluster, matter to a pattern only.

    Raises OttlaError INVALID_REGULAR_EXPRESSION.
    """
    if options.topic:
        return [options.topic]
    if options.topics:
        return sorted(options.topics)
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
            f"data source ottla: topicPattern `{pattern}` is no regular expression of RE2: {error}",
        ) from error


def boundaries(text: str, topics: Iterable[str]) -> Mapping[str, Boundary]:
    """What `start` or `end` means in each topic.

    TOPIC-PARTITION:OFFSET names a topic's partition; without a topic's name there has to be one
    topic. Raises OttlaError.
    """
    names = list(topics)
    pairs = [_OF_TOPIC.fullmatch(pair) for pair in text.split(",")]
    if not all(pairs):
        boundary = parse_boundary(text)
        if boundary.kind == "offsets" and len(names) > 1:
            wrong(f"{text!r} names no topic, and several are read: write TOPIC-PARTITION:OFFSET")
        return dict.fromkeys(names, boundary)
    by_topic: dict[str, list[str]] = {name: [] for name in names}
    for topic, number, offset in (pair.groups() for pair in pairs if pair):
        if topic not in by_topic:
            wrong(f"{text!r} names the topic {topic!r}, which is not read")
        by_topic[topic].append(f"{number}:{offset}")
    return {
        name: parse_boundary(",".join(own)) if own else Boundary("offsets", offsets={})
        for name, own in by_topic.items()
    }
