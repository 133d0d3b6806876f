"""A decision of many steps sees its own."""

from ottla.group.consumer.group import ConsumerGroup
from ottla.group.consumer.records import ConsumerGroupRecord
from ottla.group.turn import Turn


def change(turn: Turn, group: ConsumerGroup, record: ConsumerGroupRecord) -> None:
    """Write, and go on as if it were written."""
    group.apply(record)
    turn.write(record)
