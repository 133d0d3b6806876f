"""Applies records at once, so that a decision of many steps sees its own changes."""

from ottla.group.consumer.group import ConsumerGroup
from ottla.group.consumer.records import ConsumerGroupRecord
from ottla.group.turn import Turn


def change(turn: Turn, group: ConsumerGroup, record: ConsumerGroupRecord) -> None:
    """Write a record, and apply it to the working state."""
    group.apply(record)
    turn.write(record)
