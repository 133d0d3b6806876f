"""Dead letters: records that could not be delivered or decoded. One schema for all.

A letter in a topic has its record's key, value and headers, if these are copied, and headers with
the record's origin and the reason. Share groups and loads both write the headers of KIP-1191; loads
add the stage at which the record was refused. A letter that was redriven (its record sent again) is
followed in its topic by a mark: a record without key and value whose headers name the letter's
partition and offset. Pure.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from ottla.record.codec import Header

TOPIC = "__dlq.errors.topic"
PARTITION = "__dlq.errors.partition"
OFFSET = "__dlq.errors.offset"
GROUP = "__dlq.errors.group"
DELIVERY_COUNT = "__dlq.errors.delivery.count"
MESSAGE = "__dlq.errors.message"
# Only in letters of loads.
STAGE = "__dlq.errors.stage"
SCHEMA_ID = "__dlq.errors.schema.id"
TIMESTAMP = "__dlq.errors.timestamp"
# In a mark: the redriven letter's partition; in the record sent again: its origin.
REDRIVEN_PARTITION = "__dlq.redriven.partition"
REDRIVEN_OFFSET = "__dlq.redriven.offset"
REDRIVEN_FROM = "__dlq.redriven.from"

# The stage of letters without a stage header: a share group's.
DELIVERY_STAGE = "delivery"
_OURS = ("__dlq.errors.", "__dlq.redriven.")


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """The origin of a dead record, and the reason.

    `group` is the share group, or the table that refused the record. `timestamp_ms` and `schema_id`
    are the record's, None if the letter does not have them.
    """

    topic: str
    partition: int
    offset: int
    group: str
    message: str
    stage: str = DELIVERY_STAGE
    delivery_count: int = 1
    schema_id: int | None = None
    timestamp_ms: int | None = None


def letter_headers(letter: DeadLetter) -> list[Header]:
    """Return the headers of a letter, which follow its record's own headers."""
    found: list[Header] = [
        (TOPIC, letter.topic.encode()),
        (PARTITION, b"%d" % letter.partition),
        (OFFSET, b"%d" % letter.offset),
        (GROUP, letter.group.encode()),
        (DELIVERY_COUNT, b"%d" % letter.delivery_count),
        (MESSAGE, letter.message.encode()),
    ]
    if letter.stage != DELIVERY_STAGE:
        found.append((STAGE, letter.stage.encode()))
    if letter.schema_id is not None:
        found.append((SCHEMA_ID, b"%d" % letter.schema_id))
    if letter.timestamp_ms is not None:
        found.append((TIMESTAMP, b"%d" % letter.timestamp_ms))
    return found


def parse_letter(headers: Iterable[Header]) -> DeadLetter | None:
    """Parse the letter in these headers; None if they do not belong to a letter."""
    said = dict(headers)  # The last of a name: a record's own headers come first.
    try:
        return DeadLetter(
            topic=_text(said[TOPIC]),
            partition=int(said[PARTITION] or b""),
            offset=int(said[OFFSET] or b""),
            group=_text(said.get(GROUP)),
            message=_text(said.get(MESSAGE)),
            stage=_text(said.get(STAGE)) or DELIVERY_STAGE,
            delivery_count=int(said.get(DELIVERY_COUNT) or b"1"),
            schema_id=_number(said.get(SCHEMA_ID)),
            timestamp_ms=_number(said.get(TIMESTAMP)),
        )
    except (KeyError, ValueError):
        return None


def own_headers(headers: Iterable[Header]) -> list[Header]:
    """Return the headers of a letter's record, without those added by the letter and a redrive."""
    return [(name, value) for name, value in headers if not name.startswith(_OURS)]


def mark_headers(partition: int, offset: int) -> list[Header]:
    """Return the headers of a mark, which says that this letter was redriven."""
    return [(REDRIVEN_PARTITION, b"%d" % partition), (REDRIVEN_OFFSET, b"%d" % offset)]


def parse_mark(headers: Iterable[Header]) -> tuple[int, int] | None:
    """Return the partition and offset of the letter that a mark names; None if this is no mark."""
    said = dict(headers)
    try:
        return int(said[REDRIVEN_PARTITION] or b""), int(said[REDRIVEN_OFFSET] or b"")
    except (KeyError, ValueError):
        return None


def _text(value: bytes | None) -> str:
    return (value or b"").decode(errors="replace")


def _number(value: bytes | None) -> int | None:
    return None if value is None else int(value)
