"""Assignors of groups: by the names in requests, or by the names of Kafka's classes."""

from collections.abc import Iterable

_PACKAGE = "org.apache.kafka.coordinator.group.assignor"
CONSUMER_ASSIGNOR_CLASSES = {
    f"{_PACKAGE}.UniformAssignor": "uniform",
    f"{_PACKAGE}.RangeAssignor": "range",
}
SHARE_ASSIGNOR_CLASSES = {f"{_PACKAGE}.SimpleAssignor": "simple"}


def consumer_assignors(names: Iterable[str]) -> tuple[str, ...]:
    """The value of `group.consumer.assignors` with a name for each class, and each name once."""
    return tuple(dict.fromkeys(CONSUMER_ASSIGNOR_CLASSES.get(name, name) for name in names))
