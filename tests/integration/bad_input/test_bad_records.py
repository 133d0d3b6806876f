"""Batches that no client should send: each is refused by Kafka's own error, and none is stored."""

import gzip
import struct
import time
import zlib
from collections.abc import Callable

import pytest
from rig.frames import batch, encode_batch, produce_answer, produce_request, record, varint
from rig.probe import receive_frame
from rig.wire_client import WireClient

from ottla.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)

from .conftest import AGAINST_KAFKA

MakeTopic = Callable[..., str]

CORRUPT_MESSAGE = 2
UNKNOWN_TOPIC_OR_PARTITION = 3
MESSAGE_TOO_LARGE = 10
INVALID_TIMESTAMP = 32
INVALID_RECORD = 87
UNSUPPORTED_COMPRESSION_TYPE = 76
LATEST = -1


def now_ms() -> int:
    return int(time.time() * 1000)


def produce(client: WireClient, topic: str, data: bytes, partition: int = 0) -> int:
    """The error code that answers this batch."""
    client.send(produce_request(topic, partition, data, -1))
    return produce_answer(receive_frame(client.socket), topic)[0]


def log_end_offset(client: WireClient, topic: str) -> int:
    partition = ListOffsetsPartition(partition_index=0, timestamp=LATEST)
    asked = ListOffsetsRequest(
        replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=[partition])]
    )
    return int(client.call(asked, 5).topics[0].partitions[0].offset)


def good() -> bytes:
    return batch(1000, 100, now_ms()).data


def with_byte(data: bytes, position: int, value: int) -> bytes:
    return data[:position] + bytes([value]) + data[position + 1 :]


def with_crc(data: bytes) -> bytes:
    """The batch with the checksum of what it holds now."""
    from crc32c import crc32c

    return data[:17] + struct.pack(">I", crc32c(data[21:])) + data[21:]


def lying_count() -> bytes:
    """A header that claims one record more than there is."""
    data = bytearray(encode_batch([record(0, b"a"), record(1, b"b")], now_ms()).data)
    struct.pack_into(">i", data, 57, 3)
    struct.pack_into(">i", data, 23, 2)
    return with_crc(bytes(data))


def record_past_the_end() -> bytes:
    """A record whose length reaches beyond its batch."""
    return encode_batch([varint(5000) + b"\0\0\0\1\2a\0"], now_ms()).data


def client_control_batch() -> bytes:
    return encode_batch([record(0, b"a")], now_ms(), attributes=0x20).data


def gzip_of_rubbish() -> bytes:
    """A batch that says gzip and holds something else."""
    return encode_batch([b"this is no gzip stream"], now_ms(), attributes=1).data


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (with_byte(good(), 100, 0xFF), CORRUPT_MESSAGE),
        (with_byte(good(), 17, 0), CORRUPT_MESSAGE),
        (with_byte(good(), 16, 1), INVALID_RECORD),
        (with_byte(good(), 16, 0), INVALID_RECORD),
        (lying_count(), INVALID_RECORD),
        (record_past_the_end(), INVALID_RECORD),
        (client_control_batch(), INVALID_RECORD),
        (b"", INVALID_RECORD),
        (good() + good(), INVALID_RECORD),
    ],
    ids=[
        "flipped byte",
        "wrong crc",
        "magic 1",
        "magic 0",
        "wrong count",
        "record past the end",
        "control batch from a client",
        "no batch",
        "two batches",
    ],
)
def test_bad_batch_is_refused_with_kafkas_error_and_stores_nothing(
    client: WireClient, make_topic: MakeTopic, data: bytes, code: int
) -> None:
    """The connection goes on: the next good batch gets the first offset."""
    topic = make_topic()

    assert produce(client, topic, data) == code
    assert log_end_offset(client, topic) == 0
    assert produce(client, topic, good()) == 0


@pytest.mark.parametrize("magic", [3, 127, 255])
def test_magic_from_the_future_is_refused(
    client: WireClient, make_topic: MakeTopic, magic: int
) -> None:
    topic = make_topic()

    assert produce(client, topic, with_byte(good(), 16, magic)) in (CORRUPT_MESSAGE, INVALID_RECORD)
    assert log_end_offset(client, topic) == 0


@pytest.mark.parametrize("codec", [5, 6, 7])
def test_unknown_codec_is_refused(client: WireClient, make_topic: MakeTopic, codec: int) -> None:
    topic = make_topic()
    data = encode_batch([record(0, b"a")], now_ms(), attributes=codec).data

    assert produce(client, topic, data) != 0
    assert log_end_offset(client, topic) == 0


def test_stream_that_its_codec_cannot_read_is_refused(
    client: WireClient, make_topic: MakeTopic
) -> None:
    """What consumers could not decompress is not let in."""
    topic = make_topic()

    assert produce(client, topic, gzip_of_rubbish()) != 0
    assert log_end_offset(client, topic) == 0


@pytest.mark.parametrize("length", [-1, 0, 5, 2**31 - 1])
def test_batch_length_that_lies_is_refused(
    client: WireClient, make_topic: MakeTopic, length: int
) -> None:
    topic = make_topic()
    data = bytearray(good())
    struct.pack_into(">i", data, 8, length)

    # Kafka itself answers -1 (unknown server error) to the largest.
    assert produce(client, topic, bytes(data)) in (-1, CORRUPT_MESSAGE, INVALID_RECORD)
    assert log_end_offset(client, topic) == 0


def test_batch_larger_than_the_topic_allows_is_refused(
    client: WireClient, make_topic: MakeTopic
) -> None:
    topic = make_topic(max_message_bytes="2000")

    assert produce(client, topic, batch(3000, 100, now_ms()).data) == MESSAGE_TOO_LARGE
    assert log_end_offset(client, topic) == 0
    assert produce(client, topic, good()) == 0


def test_timestamp_out_of_bounds_is_refused(client: WireClient, make_topic: MakeTopic) -> None:
    """message.timestamp.before.max.ms and after.max.ms (KIP-937)."""
    topic = make_topic(
        message_timestamp_before_max_ms="600000", message_timestamp_after_max_ms="600000"
    )

    assert produce(client, topic, batch(500, 100, now_ms() - 3_600_000).data) == INVALID_TIMESTAMP
    assert produce(client, topic, batch(500, 100, now_ms() + 3_600_000).data) == INVALID_TIMESTAMP
    assert produce(client, topic, good()) == 0


@pytest.mark.parametrize("partition", [1, 99, -1, 2**31 - 1])
def test_partition_that_is_not_there_is_named_unknown(
    client: WireClient, make_topic: MakeTopic, partition: int
) -> None:
    topic = make_topic()

    assert produce(client, topic, good(), partition) == UNKNOWN_TOPIC_OR_PARTITION


def test_unknown_topic_is_named_unknown(client: WireClient) -> None:
    """Producing does not create a topic: asking for its metadata does."""
    assert produce(client, "nobody-made-this", good()) == UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.skipif(AGAINST_KAFKA, reason="Kafka names each record, and expands each batch")
def test_batch_of_which_every_record_is_refused_gets_a_short_answer(
    client: WireClient, make_topic: MakeTopic
) -> None:
    """Each record that is named is 60 bytes: 140 KB would be answered with six megabytes."""
    topic = make_topic()
    count = 100_000
    section = gzip.compress(b"".join(record(number, b"") for number in range(count)))
    data = bytearray(encode_batch([section], now_ms() + 7_200_000, attributes=1).data)
    struct.pack_into(">i", data, 23, count - 1)
    struct.pack_into(">i", data, 57, count)
    client.send(produce_request(topic, 0, with_crc(bytes(data)), -1))
    answer = receive_frame(client.socket)

    assert produce_answer(answer, topic)[0] == INVALID_TIMESTAMP
    assert len(answer) < 10_000


@pytest.mark.skipif(AGAINST_KAFKA, reason="Kafka names each record, and expands each batch")
def test_lookup_by_time_does_not_expand_batch_after_batch(
    client: WireClient, make_topic: MakeTopic
) -> None:
    """Headers that promise a newer record than there is: ten of them, 30 KB each.

    Each expands to 30 MiB of the smallest records, and would be a second of the broker's loop.
    """
    topic = make_topic()
    count, late = 4_500_000, now_ms() + 3_000_000
    stream = zlib.compressobj(9, wbits=31)
    section = b"".join(stream.compress(record(0, b"") * 4_500) for _ in range(count // 4_500))
    data = bytearray(encode_batch([section + stream.flush()], 1, attributes=1).data)
    struct.pack_into(">i", data, 23, count - 1)
    struct.pack_into(">i", data, 57, count)
    struct.pack_into(">q", data, 35, late)
    for _ in range(10):
        assert produce(client, topic, with_crc(bytes(data))) == 0
    asked = ListOffsetsRequest(
        replica_id=-1,
        topics=[
            ListOffsetsTopic(
                name=topic, partitions=[ListOffsetsPartition(partition_index=0, timestamp=late)]
            )
        ],
    )
    found = client.call(asked, 5).topics[0].partitions[0]

    assert (found.error_code, found.timestamp, found.offset) == (0, late, 3 * count)
