"""A batch built before it is sent, perhaps by another process on another machine."""

from typing import NamedTuple

from ottla.base.errors import ErrorCode
from ottla.client.common.errors import ClientError
from ottla.client.producer.encoded_batch import set_transactional, taken_as_encoded
from ottla.client.producer.queues import Batch
from ottla.record.builder import BatchBuilder
from ottla.record.header import HEADER_SIZE, computed_crc, read_header


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
