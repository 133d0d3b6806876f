"""The message layout that the fast path of Produce needs, derived from the declared messages. Pure.

The fast path finds a batch by the bytes around it, and writes numbers into a known answer. So it
serves only versions in which the records are the last field of the request, and in which error
code, base offset, append time and log start offset are adjacent in the answer. If a newer version
keeps this layout, it is served, too; any other version takes the slow path.
"""

from functools import cache
from struct import Struct
from typing import Final, NamedTuple

from ottla.record.arrival import TRAILER_SIZE
from ottla.wire.codec import encode, encode_parts
from ottla.wire.errors import VersionError
from ottla.wire.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from ottla.wire.notation import has_field

# In flexible versions partition, topic and request each end with a tag count of 0.
TRAILER: Final[bytes] = bytes(TRAILER_SIZE)
# Placeholder values that occur nowhere else in an answer.
MARKS: Final = (0x6F74746C61010101, 0x6F74746C61020202, 0x6F74746C61030303)
_ERROR_MARK: Final = 0x6F74
_ERROR_AND_NUMBERS: Final = Struct(">hqqq")


class Layout(NamedTuple):
    """The differences between the versions that the fast path can serve."""

    # Whether the records have a compact length, and tag counts follow them.
    is_flexible: bool
    has_topic_ids: bool


def layout(body: ProduceRequest, version: int) -> Layout | None:
    """Return the layout of a request of one partition; None if the fast path cannot serve it."""
    topic = body.topic_data[0]
    return _layout(type(body), type(topic), type(topic.partition_data[0]), version)


@cache
def _layout(
    request: type[ProduceRequest],
    topic: type[TopicProduceData],
    partition: type[PartitionProduceData],
    version: int,
) -> Layout | None:
    records = memoryview(b"records")
    body = request(topic_data=[topic(partition_data=[partition(records=records)])])
    try:
        parts = encode_parts(body, version)
        answer = encode(_marked_response(), version)
    except VersionError:
        return None
    place = next(at for at, part in enumerate(parts) if part is records)
    behind = b"".join(bytes(part) for part in parts[place + 1 :] if isinstance(part, bytearray))
    is_flexible = version >= request.__flexible__
    if behind != (TRAILER if is_flexible else b""):
        return None
    if _ERROR_AND_NUMBERS.pack(_ERROR_MARK, *MARKS) not in answer:
        return None
    return Layout(is_flexible, has_field(topic, "topic_id", version))


def _marked_response() -> ProduceResponse:
    answer = PartitionProduceResponse(
        error_code=_ERROR_MARK,
        base_offset=MARKS[0],
        log_append_time_ms=MARKS[1],
        log_start_offset=MARKS[2],
    )
    return ProduceResponse(responses=[TopicProduceResponse(partition_responses=[answer])])
