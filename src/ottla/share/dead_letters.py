"""Dead letters of share groups (KIP-1191): their topic, and their content.

For each record that a member rejected, or that reached the group's delivery count limit, one record
is written to the dead-letter topic of the group. Its headers contain the topic, partition and
offset of the source record, and the reason. Key, value and headers of the source record are copied
if the group's `errors.deadletterqueue.copy.record.enable` is true. Pure.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from ottla.base.errors import ErrorCode, OttlaError
from ottla.metadata.topic_names import check_topic_name
from ottla.record.builder import BatchBuilder
from ottla.record.codec import Header, Record
from ottla.record.dead_letters import DeadLetter, letter_headers
from ottla.share.deliveries import Dead

# Settings of a group.
TOPIC_NAME = "errors.deadletterqueue.topic.name"
COPY_RECORD = "errors.deadletterqueue.copy.record.enable"
# A setting of a topic.
TOPIC_ENABLE = "errors.deadletterqueue.group.enable"
# Settings of the brokers.
NAME_PREFIX = "errors.deadletterqueue.topic.name.prefix"
AUTO_CREATE = "errors.deadletterqueue.auto.create.topics.enable"

# The settings of a dead-letter topic that a broker creates. The timestamp of a dead letter is the
# time at which the broker built it, not that of the source record.
CREATED_WITH = {TOPIC_ENABLE: "true", "message.timestamp.type": "CreateTime"}

_REJECTED = "Offset rejected by client."
_EXHAUSTED = "Offset delivery count exceeded the threshold."
_RECORDS_MAX = 1000


class Origin(NamedTuple):
    """The share group, and the partition that the source records are in."""

    group_id: str
    topic: str
    partition: int


@dataclass(frozen=True, slots=True)
class Letters:
    """A batch of dead letters for all source offsets up to `last`.

    `bare` counts dead letters without key and value, whose source records did not fit into a batch.
    """

    batch: bytearray
    last: int
    bare: int = 0


def check_name(name: str, prefix: str) -> None:
    """Check the name of a dead-letter topic. Raises OttlaError(INVALID_CONFIG) if it is invalid."""
    if name.startswith("__"):
        raise OttlaError(
            ErrorCode.INVALID_CONFIG,
            f"{TOPIC_NAME} = {name} begins with __, as internal topics do: name another",
        )
    try:
        check_topic_name(name)
    except OttlaError as error:
        raise OttlaError(ErrorCode.INVALID_CONFIG, f"{TOPIC_NAME}: {error.message}") from error
    if not name.startswith(prefix):
        raise OttlaError(
            ErrorCode.INVALID_CONFIG,
            f"{TOPIC_NAME} = {name} does not begin with {prefix}, as {NAME_PREFIX} of the brokers "
            f"demands: name it {prefix}{name}, or change that setting",
        )


def check_topic(name: str, configs: Mapping[str, str], source: str) -> None:
    """Check the settings of a dead-letter topic. Raises OttlaError(INVALID_CONFIG).

    `source` is the topic of the source records, which must be another one.
    """
    if configs.get(TOPIC_ENABLE, "false").strip().lower() != "true":
        raise OttlaError(
            ErrorCode.INVALID_CONFIG,
            f"topic {name} is not open for dead letters: ottla topic alter {name} --set "
            f"{TOPIC_ENABLE}=true",
        )
    if name == source:
        raise OttlaError(
            ErrorCode.INVALID_CONFIG,
            f"topic {name} would get its own dead letters, without end: set {TOPIC_NAME} of the "
            "group to another",
        )


def destination(partition: int, count: int) -> int:
    """The partition, of `count` in a dead-letter topic, for the dead letters of `partition`."""
    return partition % count


def write_letters(
    origin: Origin,
    dead: Dead,
    found: Mapping[int, Record],
    *,
    upto: int,
    now_ms: int,
    max_bytes: int,
) -> Letters:
    """The dead letters of `dead` up to `upto`, or as many as fit into one batch of `max_bytes`.

    `found` are the source records to copy, by offset. A source record that is larger than a batch
    is not copied: its dead letter has the headers alone.
    """
    builder = BatchBuilder()
    builder.limit_bytes = max_bytes
    bare = 0
    last = dead.first - 1
    for offset in range(dead.first, min(dead.last, upto, last + _RECORDS_MAX) + 1):
        record = found.get(offset)
        context = _context(origin, dead, offset)
        if record is not None and not _add(builder, now_ms, record, context):
            if builder.record_count:
                break
            record = None
            bare += 1
        if record is None and not _add(builder, now_ms, None, context):
            break
        last = offset
    return Letters(builder.build(), last, bare)


def _add(builder: BatchBuilder, now_ms: int, record: Record | None, context: list[Header]) -> bool:
    """Add a dead letter if the batch has room for it, and return whether it was added.

    A dead letter without content is always added to an empty batch.
    """
    if record is None:
        size = _size(None, None, context)
    else:
        context = [*record.headers, *context]
        size = _size(record.key, record.value, context)
    fits = builder.size_estimate + size <= builder.limit_bytes
    if not fits and (record is not None or builder.record_count):
        return False
    key, value = (None, None) if record is None else (record.key, record.value)
    builder.append(now_ms, key, value, context)
    return True


# The most bytes that the lengths and deltas of a record take, and the lengths of a header.
_RECORD_OVERHEAD = 40
_HEADER_OVERHEAD = 10


def _size(key: bytes | None, value: bytes | None, headers: list[Header]) -> int:
    """An upper bound of the bytes that a record takes in a batch."""
    texts = sum(len(name.encode()) + len(text or b"") + _HEADER_OVERHEAD for name, text in headers)
    return _RECORD_OVERHEAD + len(key or b"") + len(value or b"") + texts


def _context(origin: Origin, dead: Dead, offset: int) -> list[Header]:
    return letter_headers(
        DeadLetter(
            origin.topic,
            origin.partition,
            offset,
            origin.group_id,
            _REJECTED if dead.rejected else _EXHAUSTED,
            delivery_count=dead.delivery_count,
        )
    )
