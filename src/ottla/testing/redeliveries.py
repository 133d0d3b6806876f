"""Counts the records that a broker sends to a group again. Pure.

Fetches do not name a group. A connection is taken for the reader of a group's partition if client
id and host are those of the member that has the partition, if its first fetch begins at the
committed offset (anywhere, if there is none), and if no other connection is the reader at that
time.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from ottla.base.ids import TopicPartition


class Reader(Protocol):
    """A connection."""

    @property
    def closed(self) -> bool: ...


class Owner(NamedTuple):
    """The member that has a partition, and the offset that its group has committed there."""

    group_id: str
    member_id: str
    client_id: str
    host: str
    committed: int | None


class SentRecords(NamedTuple):
    """Records of a partition from `start` to before `end`, sent to a client."""

    name: TopicPartition
    client_id: str
    host: str
    start: int
    end: int


@dataclass(slots=True)
class _Reading:
    reader: Reader
    member_id: str
    # The end of what the group's members were sent.
    highest: int


class Redeliveries:
    """The reader of each group's partitions, and how far the group was sent records."""

    def __init__(self) -> None:
        self._readings: dict[tuple[str, TopicPartition], _Reading] = {}

    def on_sent(self, reader: Reader, sent: SentRecords, owners: Mapping[str, Owner]) -> int:
        """Note sent records; return how many of them a group was sent before.

        `owners` has, by group id, the members that have the partition.
        """
        count = 0
        for group_id, owner in owners.items():
            if (owner.client_id, owner.host) != (sent.client_id, sent.host):
                continue
            key = (group_id, sent.name)
            reading = self._readings.get(key)
            if reading is None or reading.reader is not reader:
                is_taken = (
                    reading is not None
                    and not reading.reader.closed
                    and reading.member_id == owner.member_id
                )
                if is_taken or owner.committed not in (None, sent.start):
                    continue
                highest = sent.start if reading is None else reading.highest
                reading = self._readings[key] = _Reading(reader, owner.member_id, highest)
            count += max(0, min(sent.end, reading.highest) - sent.start)
            reading.highest = max(reading.highest, sent.end)
        return count
