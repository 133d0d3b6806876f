"""The position of a stream, as a value and as the JSON in Spark's checkpoint. Pure.

    {"topics": {"flights": {"id": "…", "partitions": {"0": {"offset": 100, "epoch": 3}}}}}

The topic's id shows a topic that was deleted and created anew. The leader epoch is the leader's
when it had all records below the offset (-1: unknown): together they show a truncated log.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ottla.base.errors import ErrorCode, OttlaError


class StreamPlace(NamedTuple):
    """The offset to read next, and the leader epoch of the log in which it was seen."""

    offset: int
    leader_epoch: int


class Key(NamedTuple):
    """A partition of a topic."""

    topic: str
    partition: int


@dataclass(frozen=True, slots=True)
class StreamOffset:
    """A stream's position in each partition that it knows, and the ids of their topics."""

    ids: Mapping[str, str | None] = field(default_factory=dict)
    places: Mapping[Key, StreamPlace] = field(default_factory=dict)


def to_json(offset: StreamOffset) -> dict[str, Any]:
    """Return JSON that is equal for equal offsets, whatever the order of partitions."""
    topics: dict[str, Any] = {
        topic: {"id": offset.ids[topic] or "", "partitions": {}} for topic in sorted(offset.ids)
    }
    for key, place in sorted(offset.places.items()):
        topics[key.topic]["partitions"][str(key.partition)] = {
            "offset": place.offset,
            "epoch": place.leader_epoch,
        }
    return {"topics": topics}


def from_json(content: Mapping[str, Any]) -> StreamOffset:
    """Parse the result of `to_json`. Raises OttlaError for anything else."""
    try:
        topics = content["topics"]
        return StreamOffset(
            {topic: found["id"] or None for topic, found in topics.items()},
            {
                Key(topic, int(partition)): StreamPlace(int(place["offset"]), int(place["epoch"]))
                for topic, found in topics.items()
                for partition, place in found["partitions"].items()
            },
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise OttlaError(
            ErrorCode.INVALID_REQUEST,
            f"the checkpoint has an offset that no stream of ottla wrote ({error!r} in {content}): "
            "use a new checkpoint folder",
        ) from error
