"""Detects that a topic was recreated or truncated since a stream last read it. Pure."""

from collections.abc import Mapping

from ottla.base.errors import ErrorCode, OttlaError
from ottla.lake.source.offsets import Key, StreamOffset
from ottla.lake.source.source import TopicEnds

_REMEDY = (
    "What was read stays as it is; to read the topic as it is now, start the stream with a new "
    "checkpoint folder (and a new target, where its rows must not be mixed)"
)


def require_same_topics(start: StreamOffset, current: Mapping[str, TopicEnds]) -> None:
    """Raise OttlaError UNKNOWN_TOPIC_ID for a topic that was deleted and created again."""
    for topic, known in start.ids.items():
        now = current[topic].topic_id if topic in current else None
        if known and now and known != now:
            raise OttlaError(
                ErrorCode.UNKNOWN_TOPIC_ID,
                f"topic {topic} was deleted and created anew since the stream read it (its id was "
                f"{known} and is {now}). {_REMEDY}",
            )


def gone_topics(start: StreamOffset, current: Mapping[str, TopicEnds]) -> list[str]:
    """Return the topics that the stream has read and that no longer exist."""
    return sorted(start.ids.keys() - current.keys())


def suspects(start: StreamOffset, current: Mapping[str, TopicEnds]) -> dict[Key, int]:
    """Return the partitions that may have been truncated, with the leader epoch of their position.

    Within one leader epoch a log only grows. Only a change of the leader can lose records.
    """
    found = {}
    for key, place in start.places.items():
        if key.topic not in current:
            continue
        end = current[key.topic].ends.get(key.partition)
        if end is None or place.leader_epoch < 0:
            continue
        if end.leader_epoch != place.leader_epoch or end.offset < place.offset:
            found[key] = place.leader_epoch
    return found


def require_no_truncation(start: StreamOffset, epoch_ends: Mapping[Key, int]) -> None:
    """Raise OttlaError OFFSET_OUT_OF_RANGE if an epoch ends below the position read in it.

    `epoch_ends` has the end of each suspect partition's epoch in the leader's log; -1 if the leader
    does not know it.
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


def require_no_shrinking(
    start: StreamOffset, current: Mapping[str, TopicEnds], epoch_ends: Mapping[Key, int]
) -> None:
    """Raise OttlaError OFFSET_OUT_OF_RANGE if a log ends below the stream's position.

    Ignored if the leader still has the records in their epoch: it has yet to learn that they are
    committed.
    """
    for key, place in sorted(start.places.items()):
        if key.topic not in current or epoch_ends.get(key, -1) >= place.offset:
            continue
        end = current[key.topic].ends.get(key.partition)
        if end is None or end.offset < place.offset:
            now = "does not exist any more" if end is None else f"ends at {end.offset} now"
            raise OttlaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"{key.topic}-{key.partition} was read up to offset {place.offset}, but {now}: "
                f"records that were read are gone from its log. {_REMEDY}",
            )
