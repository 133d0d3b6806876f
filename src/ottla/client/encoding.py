"""A closed batch as bytes: made once, stamped anew when its numbers change, cut when too large."""

from struct import Struct

from ottla.client.queues import RECORD_OVERHEAD, Batch
from ottla.record.builder import BatchBuilder
from ottla.record.header import CRC_POSITION, computed_crc, read_header
from ottla.record.reader import records

_CRC = Struct(">I")
# Producer id, producer epoch, base sequence: side by side in the header.
_PRODUCER = Struct(">qhi")
_PRODUCER_POSITION = 43


def encode(batch: Batch, compression: int, level: int | None) -> bytearray:
    """The bytes of a closed batch. Its lists are emptied, as the bytes hold all they held."""
    builder = BatchBuilder(
        compression, level, batch.producer_id, batch.producer_epoch, batch.base_sequence
    )
    if batch.headers:
        columns = zip(batch.timestamps, batch.keys, batch.values, strict=True)
        for number, (timestamp_ms, key, value) in enumerate(columns):
            builder.append(timestamp_ms, key, value, batch.headers.get(number, ()))
    else:
        # Columns without keys come with none at all.
        has_keys = batch.keys.count(None) < len(batch.keys)
        builder.extend(batch.timestamps, batch.keys if has_keys else None, batch.values)
    batch.timestamps, batch.keys, batch.values, batch.headers = [], [], [], {}
    return builder.build()


def restamp(batch: Batch) -> None:
    """Write the batch's producer id, epoch and sequence over those it was encoded with."""
    encoded = batch.encoded
    assert encoded is not None
    _PRODUCER.pack_into(
        encoded, _PRODUCER_POSITION, batch.producer_id, batch.producer_epoch, batch.base_sequence
    )
    _CRC.pack_into(encoded, CRC_POSITION, computed_crc(encoded, 0, len(encoded)))


def split(batch: Batch) -> tuple[Batch, Batch]:
    """Two batches with the halves of an encoded one, not yet encoded themselves.

    They share its serial, and its range of sequences between them.
    """
    assert batch.encoded is not None
    assert batch.record_count > 1
    everything = records(batch.encoded, 0, read_header(batch.encoded), check_crc=False)
    middle = len(everything) // 2
    halves: list[Batch] = []
    for start, part in ((0, everything[:middle]), (middle, everything[middle:])):
        order = (batch.order[0], batch.order[1] + start)
        half = Batch(batch.topic, batch.partition, order, batch.created_ms, 0)
        half.values = [record.value for record in part]
        half.keys = [record.key for record in part]
        half.timestamps = [record.timestamp for record in part]
        half.headers = {n: record.headers for n, record in enumerate(part) if record.headers}
        half.record_count = half.delivery.record_count = len(part)
        half.size = sum(
            RECORD_OVERHEAD + len(record.key or b"") + len(record.value or b"") for record in part
        )
        half.producer_id = batch.producer_id
        half.producer_epoch = batch.producer_epoch
        if batch.base_sequence >= 0:
            half.base_sequence = (batch.base_sequence + start) & 0x7FFFFFFF
        halves.append(half)
    return halves[0], halves[1]
