"""Settings changed: the nearest name for one that does not exist."""

from ottla.base.errors import ErrorCode, OttlaError
from ottla.operations.settings import naming_nearest


def test_nearest_setting_is_proposed_once() -> None:
    """Where the broker proposed it already, or the name is right, nothing is added."""
    error = OttlaError(ErrorCode.INVALID_CONFIG, "Unknown topic config name: retention.m")
    told = naming_nearest(error, ["retention.m"], ["retention.ms", "segment.ms"])
    assert told.message.endswith("retention.m: did you mean retention.ms?")
    said = OttlaError(ErrorCode.INVALID_CONFIG, "Unknown: x; did you mean retention.ms?")
    assert naming_nearest(said, ["retention.m"], ["retention.ms"]).message == said.message
    right = naming_nearest(error, ["retention.ms"], ["retention.ms"])
    assert right.message == error.message
    other = OttlaError(ErrorCode.TOPIC_ALREADY_EXISTS, "there")
    assert naming_nearest(other, ["retention.m"], ["retention.ms"]) is other
