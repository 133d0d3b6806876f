"""What the creator of a topic should know."""

from uuid import UUID

from ottla.client.admin.configs import ConfigEntry, ConfigSource
from ottla.client.connection.view import PartitionDescription, TopicDescription
from ottla.operations.topics import CreatedTopic

VALUES = {
    "cleanup.policy": "delete",
    "min.insync.replicas": "2",
    "retention.bytes": "-1",
    "retention.ms": "1000",
    "segment.bytes": "1073741824",
    "segment.ms": "5000",
}


def created(*live: int) -> CreatedTopic:
    view = TopicDescription(
        "t", UUID(int=1), False, (PartitionDescription(0, 1, 0, (1, 2, 3), (1,)),)
    )
    configs = {
        name: ConfigEntry(name, value, ConfigSource.TOPIC, False, False)
        for name, value in VALUES.items()
    }
    return CreatedTopic(view, True, live, configs)


def test_brokers_that_are_down_come_before_settings_that_are_odd() -> None:
    """The first concerns writes now, the second what is kept later."""
    topic = created(1)
    assert (topic.replication_factor, topic.brokers_down) == (3, (2, 3))
    down, odd = topic.notes
    assert down.startswith("brokers 2, 3 are down")
    assert "acks=all is refused" in down
    assert odd.startswith("segment.ms=5000 is above retention.ms=1000")


def test_with_all_brokers_alive_only_the_settings_are_noted() -> None:
    """Nothing is said of brokers."""
    (odd,) = created(1, 2, 3).notes
    assert odd.startswith("segment.ms=5000 is above")
