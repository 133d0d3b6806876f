"""The position of a stream, and its JSON in Spark's checkpoint. Pure.

    {"topics": {"flights": {"id": "…", "partitions": {"0": {"offset": 100, "epoch": 3}}}}}

The topic id shows whether the topic was deleted and created again. The leader epoch is that of the
leader from which the records below the offset were read (-1 if unknown). Epoch and offset show
whether the log was truncated.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ottla.base.errors import ErrorCode, OttlaError
from ottla.lake.source.cluster import LogPosition

_REMEDY = (
    "What was read stays as it is; to read the topic as it is now, start the stream with a new "
    "checkpoint folder (and a new target, where its rows must not be mixed)"
)


class Key(NamedTuple):
    """A partition of a topic."""

    topic: str
    partition: int


@dataclass(frozen=True, slots=True)
class StreamOffset:
    """A stream's position in each partition that it knows, and the ids of their topics."""

    ids: Mapping[str, str | None] = field(default_factory=dict)
    places: Mapping[Key, LogPosition] = field(default_factory=dict)


def to_json(offset: StreamOffset) -> dict[str, Any]:
    """Return the offset as JSON, sorted so that it is equal for equal offsets."""
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
                Key(topic, int(partition)): LogPosition(int(place["offset"]), int(place["epoch"]))
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


def require_same_topics(start: StreamOffset, ids: Mapping[str, str | None]) -> None:
    """Raise OttlaError UNKNOWN_TOPIC_ID for a topic that was deleted and created again."""
    for topic, known in start.ids.items():
        now = ids.get(topic)
        if known and now and known != now:
            raise OttlaError(
                ErrorCode.UNKNOWN_TOPIC_ID,
                f"topic {topic} was deleted and created anew since the stream read it (its id was "
                f"{known} and is {now}). {_REMEDY}",
            )


def suspects(start: StreamOffset, ends: Mapping[Key, LogPosition]) -> dict[Key, int]:
    """Return the partitions that may have been truncated, with the leader epoch of their position.

    Within one leader epoch a log only grows, so only a new leader can have lost records.
    """
    found = {}
    for key, place in start.places.items():
        end = ends.get(key)
        if end is None or place.leader_epoch < 0:
            continue
        if end.leader_epoch != place.leader_epoch or end.offset < place.offset:
            found[key] = place.leader_epoch
    return found


def require_no_truncation(
    start: StreamOffset, current: StreamOffset, epoch_ends: Mapping[Key, int]
) -> None:
    """Raise OttlaError OFFSET_OUT_OF_RANGE if a log lost records that the stream has read.

    `current` has the ends of the topics that exist. For each partition of `suspects`, `epoch_ends`
    has the end offset, in the leader's log, of the leader epoch of its position; -1 if the leader
    does not know the epoch. A log that seems to end below the position is accepted if that end
    offset is not below it: then a new leader has the records, but does not know yet that they are
    committed.
    """
    for key, end in sorted(epoch_ends.items()):
        place = start.places[key]
        if 0 <= end < place.offset:
            raise OttlaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"{key.topic}-{key.partition} was read up to offset {place.offset} in leader epoch "
                f"{place.leader_epoch}, but the leader's log has that epoch only up to {end}: an "
                f"unclean election truncated it, and offsets {end} to {place.offset} are other "
                f"records now, or gone. {_REMEDY}",
            )
    for key, place in sorted(start.places.items()):
        if key.topic not in current.ids or epoch_ends.get(key, -1) >= place.offset:
            continue
        log_end = current.places.get(key)
        if log_end is None or log_end.offset < place.offset:
            now = "does not exist any more" if log_end is None else f"ends at {log_end.offset} now"
            raise OttlaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"{key.topic}-{key.partition} was read up to offset {place.offset}, but {now}: "
                f"records that were read are gone from its log. {_REMEDY}",
            )
