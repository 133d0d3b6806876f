"""What may have become of a topic since a stream read it last: made anew, or truncated. Pure."""

from collections.abc import Mapping

from ottla.base.errors import ErrorCode, OttlaError
from ottla.lake.source import TopicEnds
from ottla.lake.stream.offsets import Key, StreamOffset

_REMEDY = (
    "What was read stays as it is; to read the topic as it is now, start the stream with a new "
    "checkpoint folder (and a new target, where its rows must not be mixed)"
)


def require_same_topics(start: StreamOffset, current: Mapping[str, TopicEnds]) -> None:
    """Raise OttlaError UNKNOWN_TOPIC_ID for a topic that was deleted and created anew."""
    for topic, known in start.ids.items():
        now = current[topic].topic_id if topic in current else None
        if known and now and known != now:
            raise OttlaError(
                ErrorCode.UNKNOWN_TOPIC_ID,
                f"topic {topic} was deleted and created anew since the stream read it (its id was "
                f"{known} and is {now}). {_REMEDY}",
            )


def gone_topics(start: StreamOffset, current: Mapping[str, TopicEnds]) -> list[str]:
    """Topics that the stream has read and that are not there any more."""
    return sorted(start.ids.keys() - current.keys())


def suspects(start: StreamOffset, current: Mapping[str, TopicEnds]) -> dict[Key, int]:
    """Partitions that may have been truncated, with the leader epoch that they were read in.

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
    """Raise OttlaError OFFSET_OUT_OF_RANGE where an epoch ends before what was read in it.

    `epoch_ends` has where the leader's log ends in the epoch that each suspect was read in; -1
    where it does not know.
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
    """Raise OttlaError OFFSET_OUT_OF_RANGE where a log ends before what was read.

    Not where its leader knows the records by their epoch: it has not heard yet that they are
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
