"""A closed batch as bytes: encoded once, renumbered on retries, split if too large."""

from struct import Struct
from typing import NamedTuple

from ottla.base.errors import ErrorCode
from ottla.client.common.errors import ClientError
from ottla.client.producer.queues import Batch
from ottla.record.builder import BatchBuilder, seal
from ottla.record.header import (
    ATTRIBUTES_POSITION,
    HEADER_SIZE,
    TRANSACTIONAL_FLAG,
    computed_crc,
    read_header,
)
from ottla.record.reader import records

# The builder of an encoded batch: closed, because another thread may still try to add to it.
_EMPTIED = BatchBuilder()
_EMPTIED.close()
# Producer id, producer epoch, base sequence: adjacent in the header.
_PRODUCER = Struct(">qhi")
_PRODUCER_POSITION = 43
# The low byte of the attributes.
_FLAGS_POSITION = ATTRIBUTES_POSITION + 1


def encode(
    batch: Batch, compression: int, level: int | None, *, transactional: bool = False
) -> None:
    """Encode a finished batch.

    Its builder is dropped, because the bytes contain all its records.
    """
    builder = batch.builder
    builder.compression, builder.level = compression, level
    builder.producer_id, builder.producer_epoch = batch.producer_id, batch.producer_epoch
    builder.base_sequence = batch.base_sequence
    batch.head, batch.payload = builder.build_parts()
    batch.builder = _EMPTIED
    if transactional:
        set_transactional(batch)


def set_transactional(batch: Batch) -> None:
    """Mark an encoded batch as part of a transaction."""
    assert batch.head is not None
    batch.head[_FLAGS_POSITION] |= TRANSACTIONAL_FLAG
    seal(batch.head, batch.payload)


def taken_as_encoded(batch: Batch, content: bytes, record_count: int) -> None:
    """Give an empty batch the bytes of a batch that was encoded elsewhere."""
    batch.builder = _EMPTIED
    batch.head, batch.payload = bytearray(content[:HEADER_SIZE]), content[HEADER_SIZE:]
    batch.size = len(content)
    batch.record_count = batch.delivery.record_count = record_count


def restamp(batch: Batch) -> None:
    """Overwrite the batch's producer id, epoch and sequence."""
    assert batch.head is not None
    _PRODUCER.pack_into(
        batch.head, _PRODUCER_POSITION, batch.producer_id, batch.producer_epoch, batch.base_sequence
    )
    seal(batch.head, batch.payload)


def split(batch: Batch) -> tuple[Batch, Batch]:
    """Split an encoded batch into two halves, which are not encoded yet.

    Both halves keep the batch's serial, and divide its range of sequences.
    """
    assert batch.head is not None
    assert batch.record_count > 1
    encoded = batch.head + batch.payload
    everything = records(encoded, 0, read_header(encoded), check_crc=False)
    middle = len(everything) // 2
    halves: list[Batch] = []
    for start, part in ((0, everything[:middle]), (middle, everything[middle:])):
        order = (batch.order[0], batch.order[1] + start)
        half = Batch(batch.topic, batch.partition, order, batch.created_ms, 0)
        for record in part:
            half.builder.append(record.timestamp, record.key, record.value, record.headers)
        half.finish()
        half.producer_id = batch.producer_id
        half.producer_epoch = batch.producer_epoch
        if batch.base_sequence >= 0:
            half.base_sequence = (batch.base_sequence + start) & 0x7FFFFFFF
        halves.append(half)
    return halves[0], halves[1]


class PreparedBatch(NamedTuple):
    """Records of one partition as a whole record batch, without a producer's numbers.

    The function `prepared` makes one from a `BatchBuilder`. The producer that sends it writes
    producer id, epoch and sequence into it, so any producer may send it, within a transaction or
    not.
    """

    topic: str
    partition: int
    record_count: int
    content: bytes


def prepared(topic: str, partition: int, builder: BatchBuilder) -> PreparedBatch:
    """Return the batch of a builder with at least one record; it may be compressed."""
    return PreparedBatch(topic, partition, builder.record_count, bytes(builder.build()))


def to_queue(wanted: PreparedBatch, batch: Batch, *, transactional: bool) -> None:
    """Put the prepared bytes into `batch`. Raises ClientError if they are damaged."""
    content = wanted.content
    # Sending recomputes the checksum, which would hide the damage.
    if (
        len(content) < HEADER_SIZE
        or (header := read_header(content)).crc != computed_crc(content, 0, len(content))
        or header.record_count != wanted.record_count
    ):
        raise ClientError(
            ErrorCode.CORRUPT_MESSAGE,
            f"a prepared batch for {wanted.topic}-{wanted.partition} is damaged; prepare it again",
        )
    taken_as_encoded(batch, content, wanted.record_count)
    if transactional:
        set_transactional(batch)
