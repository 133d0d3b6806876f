"""What a leader refuses and changes. Codes are those that Apache Kafka 4.3's own
ProduceRequest.validateRecords and LogValidator answered to the same bytes."""

import struct
from dataclasses import replace
from pathlib import Path

import pytest

from ottla.base.crc32c import checksum
from ottla.base.errors import ErrorCode, OttlaError
from ottla.record.builder import BatchBuilder, build_batch
from ottla.record.compression import compress
from ottla.record.header import read_header
from ottla.record.reader import records
from ottla.record.validation import Expansion, RejectedBatch, Validated, validate
from ottla.storage.segment.config import LogConfig

NOW_MS = 1_700_000_000_000
CONFIG = LogConfig()
HOUR_MS = 3_600_000


def batch(*times: int, **settings) -> bytearray:
    builder = BatchBuilder(**settings)
    for time in times or (NOW_MS, NOW_MS - 5, NOW_MS + 1):
        builder.append(time, b"k", b"v" * 20)
    return builder.build()


def patched(buffer: bytearray, layout: str, position: int, value: int) -> bytearray:
    """The batch with one field set to `value`, its checksum made right again."""
    struct.pack_into(layout, buffer, position, value)
    struct.pack_into(">I", buffer, 17, checksum(buffer[21:]))
    return buffer


def check(buffer: bytearray | bytes, config: LogConfig = CONFIG, **context) -> Validated:
    return validate(memoryview(buffer), config, NOW_MS, **context)


@pytest.mark.parametrize("compression", range(5))
def test_an_honest_batch_passes_as_the_bytes_it_was(compression: int) -> None:
    """No copy, no decompression: the very same buffer goes on to the log."""
    buffer = memoryview(batch(compression=compression))
    before = bytes(buffer)
    validated = validate(buffer, CONFIG, NOW_MS)
    assert validated.buffer is buffer
    assert bytes(buffer) == before
    assert validated.header == read_header(before)


@pytest.mark.parametrize(
    ("layout", "position", "value", "code"),
    [
        (">i", 57, 4, ErrorCode.INVALID_RECORD),
        (">i", 57, 0, ErrorCode.INVALID_RECORD),
        (">i", 57, -1, ErrorCode.INVALID_RECORD),
        (">i", 23, 5, ErrorCode.INVALID_RECORD),
        (">i", 23, -1, ErrorCode.INVALID_RECORD),
        (">q", 0, 5, ErrorCode.INVALID_RECORD),
        (">h", 21, 0x20, ErrorCode.INVALID_RECORD),
        (">h", 21, 0x10, ErrorCode.INVALID_RECORD),
        (">h", 21, 0x08, ErrorCode.INVALID_TIMESTAMP),
        (">h", 21, 5, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
        (">h", 21, 7, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
        (">b", 16, 0, ErrorCode.INVALID_RECORD),
        (">b", 16, 1, ErrorCode.INVALID_RECORD),
        (">b", 16, 3, ErrorCode.CORRUPT_MESSAGE),
        (">b", 16, -1, ErrorCode.CORRUPT_MESSAGE),
        (">i", 8, 10, ErrorCode.CORRUPT_MESSAGE),
        (">i", 8, -1, ErrorCode.CORRUPT_MESSAGE),
        (">i", 8, 40, ErrorCode.CORRUPT_MESSAGE),
        (">i", 8, 2**31 - 1, ErrorCode.INVALID_RECORD),
    ],
)
def test_a_header_that_no_client_may_send_has_kafkas_code(layout, position, value, code) -> None:
    """Counts that disagree, flags of brokers, formats and codecs that do not exist."""
    with pytest.raises(OttlaError) as refused:
        check(patched(batch(), layout, position, value))
    assert refused.value.code is code


@pytest.mark.parametrize("name", ["magic_0", "magic_1"])
def test_old_formats_are_refused_as_kafka_does(name: str) -> None:
    """Kafka 4.3 answers INVALID_RECORD to formats 0 and 1, and so do we."""
    vectors = Path(__file__).with_name("vectors").joinpath("kafka_4_3.txt").read_text()
    (text,) = (line.split()[1] for line in vectors.splitlines() if line.startswith(name))
    with pytest.raises(OttlaError, match=r"since Kafka 0\.11") as refused:
        check(bytes.fromhex(text))
    assert refused.value.code is ErrorCode.INVALID_RECORD


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda b: b"", ErrorCode.INVALID_RECORD),
        (lambda b: b[:16], ErrorCode.INVALID_RECORD),
        (lambda b: b[:30], ErrorCode.INVALID_RECORD),
        (lambda b: b[:-1], ErrorCode.INVALID_RECORD),
        (lambda b: b + b, ErrorCode.INVALID_RECORD),
        (lambda b: b + b"\x00", ErrorCode.INVALID_RECORD),
        (lambda b: b[:-1] + b"\xff", ErrorCode.CORRUPT_MESSAGE),
    ],
)
def test_anything_but_one_whole_batch_is_refused(change, code) -> None:
    """A produce request of version 3 or later holds one batch for each partition (KIP-98)."""
    with pytest.raises(OttlaError) as refused:
        check(change(batch()))
    assert refused.value.code is code


def test_the_checksum_is_looked_at_after_the_size() -> None:
    """Too large is an answer in itself: nobody computes a checksum over it."""
    buffer = batch()
    buffer[-1] ^= 1
    with pytest.raises(OttlaError, match=r"max\.message\.bytes") as refused:
        check(buffer, replace(CONFIG, max_message_bytes=len(buffer) - 1))
    assert refused.value.code is ErrorCode.MESSAGE_TOO_LARGE
    good = batch()
    assert check(good, replace(CONFIG, max_message_bytes=len(good))).header.record_count == 3
    with pytest.raises(OttlaError, match=r"segment\.bytes") as refused:
        check(good, replace(CONFIG, segment_bytes=len(good) - 1))
    assert refused.value.code is ErrorCode.RECORD_LIST_TOO_LARGE


def test_an_idempotent_batch_needs_a_sequence_and_an_epoch() -> None:
    """KIP-98: a producer id without a sequence cannot be checked for doubles."""
    assert check(batch(producer_id=5, producer_epoch=0, base_sequence=0)).header.producer_id == 5
    for settings in ({"producer_epoch": 0}, {"base_sequence": 0}):
        with pytest.raises(OttlaError, match="producer 5") as refused:
            check(batch(producer_id=5, **settings))
        assert refused.value.code is ErrorCode.INVALID_RECORD


def test_a_transactional_batch_of_a_producer_passes() -> None:
    """The flag is suspect only without a producer id."""
    buffer = batch(producer_id=5, producer_epoch=0, base_sequence=0, transactional=True)
    assert check(buffer).header.is_transactional


def test_zstd_needs_produce_version_7() -> None:
    """KIP-110."""
    assert check(batch(compression=4), produce_version=7).header.compression == 4
    with pytest.raises(OttlaError) as refused:
        check(batch(compression=4), produce_version=6)
    assert refused.value.code is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


@pytest.mark.parametrize("compression", [0, 1])
def test_timestamps_too_far_in_the_future_are_refused_record_by_record(compression: int) -> None:
    """KIP-937: an hour ahead by default; the answer names the records (KIP-467)."""
    assert check(batch(NOW_MS + HOUR_MS, compression=compression)).header.record_count == 1
    with pytest.raises(RejectedBatch) as refused:
        check(batch(NOW_MS, NOW_MS + HOUR_MS + 1, -1, compression=compression))
    assert refused.value.code is ErrorCode.INVALID_TIMESTAMP
    assert [index for index, _ in refused.value.record_errors] == [1]


def test_timestamps_too_old_are_refused_only_where_the_topic_bounds_them() -> None:
    """KIP-937: message.timestamp.before.max.ms; a record without timestamp is never too old."""
    old = batch(NOW_MS, NOW_MS - 11, -1, NOW_MS - 10, NOW_MS - 12)
    assert check(old).header.record_count == 5
    with pytest.raises(RejectedBatch) as refused:
        check(old, replace(CONFIG, message_timestamp_before_max_ms=10))
    assert refused.value.code is ErrorCode.INVALID_TIMESTAMP
    assert [index for index, _ in refused.value.record_errors] == [1, 4]


def test_a_header_that_overstates_its_newest_timestamp_is_put_right() -> None:
    """Kafka recomputes it from the records; we do where the claim would be refused or absurd."""
    for claim in (NOW_MS + 10 * HOUR_MS, NOW_MS - 100):
        validated = check(patched(batch(), ">q", 35, claim))
        assert validated.header.max_timestamp == NOW_MS + 1
        assert len(records(validated.buffer, 0, validated.header)) == 3


@pytest.mark.parametrize("compression", range(5))
def test_log_append_time_is_stamped_in_place(compression: int) -> None:
    """KIP-32: flag, newest timestamp, checksum; not a byte of the records, however compressed."""
    buffer = batch(5, 6, compression=compression)
    payload = bytes(buffer[61:])
    validated = check(buffer, replace(CONFIG, message_timestamp_type="LogAppendTime"))
    assert bytes(validated.buffer[61:]) == payload
    found = records(validated.buffer, 0, validated.header)
    assert [record.timestamp for record in found] == [NOW_MS, NOW_MS]
    assert validated.header.max_timestamp == NOW_MS


@pytest.mark.parametrize("source", range(5))
@pytest.mark.parametrize(
    ("name", "target"), [("uncompressed", 0), ("gzip", 1), ("snappy", 2), ("lz4", 3), ("zstd", 4)]
)
def test_compression_type_converts_the_batch(source: int, name: str, target: int) -> None:
    """The topic's codec wins over the producer's; the same codec stays the same bytes."""
    buffer = batch(compression=source, producer_id=3, producer_epoch=1, base_sequence=9)
    before = bytes(buffer)
    original = records(before, 0, read_header(before))
    validated = check(buffer, replace(CONFIG, compression_type=name))
    assert validated.header.compression == target
    assert validated.header.base_sequence == 9
    assert records(validated.buffer, 0, validated.header) == original
    assert (bytes(validated.buffer) == before) is (source == target)
    validated.buffer[0:8] = struct.pack(">q", 77)
    assert read_header(validated.buffer).base_offset == 77


def test_a_conversion_that_makes_the_batch_too_large_is_refused() -> None:
    """Kafka checks max.message.bytes once more after it has changed a batch."""
    buffer = build_batch([NOW_MS], None, [bytes(5000)], compression=4)
    config = replace(CONFIG, compression_type="uncompressed", max_message_bytes=1000)
    with pytest.raises(OttlaError, match="after conversion") as refused:
        check(buffer, config)
    assert refused.value.code is ErrorCode.MESSAGE_TOO_LARGE


@pytest.mark.parametrize("compression", range(5))
def test_a_compacted_topic_needs_keys(compression: int) -> None:
    """Each record without one is named; an empty key is a key."""
    builder = BatchBuilder(compression)
    for key in (b"k", None, b"", None):
        builder.append(NOW_MS, key, b"v")
    buffer = builder.build()
    assert check(buffer).header.record_count == 4
    with pytest.raises(RejectedBatch, match="2 records were refused") as refused:
        check(buffer, replace(CONFIG, cleanup_policy=frozenset({"compact"})))
    assert refused.value.code is ErrorCode.INVALID_RECORD
    assert [index for index, _ in refused.value.record_errors] == [1, 3]
    keyed = batch(compression=compression)
    validated = check(keyed, replace(CONFIG, cleanup_policy=frozenset({"compact", "delete"})))
    assert bytes(validated.buffer) == keyed


def test_records_that_are_looked_at_must_be_counted_from_zero() -> None:
    """Offset deltas 0, 1, 2 …: the leader gives offsets by adding to the first."""
    buffer = batch(NOW_MS, NOW_MS)
    position = buffer.rindex(b"\x02k")
    assert buffer[position - 1] == 2
    buffer[position - 1] = 4
    skipping = patched(buffer, ">b", 16, 2)
    with pytest.raises(OttlaError, match="record 1 of the batch has offset 2") as refused:
        check(skipping, replace(CONFIG, cleanup_policy=frozenset({"compact"})))
    assert refused.value.code is ErrorCode.INVALID_RECORD


COMPACTED = replace(CONFIG, cleanup_policy=frozenset({"compact"}))
# Records of seven bytes, all with offset 0: they compress to nothing.
NOTHING = bytes([12, 0, 0, 0, 0, 1, 0])


def bomb(section: bytes, record_count: int, compression: int = 4) -> bytearray:
    """An honest header over records that are not."""
    head = batch(NOW_MS, compression=compression)[:61]
    content = compress(compression, section)
    struct.pack_into(">i", head, 8, 49 + len(content))
    struct.pack_into(">i", head, 23, record_count - 1)
    struct.pack_into(">i", head, 57, record_count)
    return patched(head + content, ">b", 16, 2)


def test_a_batch_that_expands_beyond_measure_is_refused() -> None:
    """A thousand times its size, after the first mebibyte: only zstd does that."""
    with pytest.raises(OttlaError, match="expands to more than") as refused:
        check(bomb(bytes(20 << 20), 1), COMPACTED)
    assert refused.value.code is ErrorCode.CORRUPT_MESSAGE


def test_a_megabyte_of_zeros_is_no_bomb() -> None:
    """Whatever it is compressed to."""
    for compression in (1, 2, 3, 4):
        buffer = BatchBuilder(compression=compression)
        buffer.append(NOW_MS, b"k", bytes(1_000_000))
        check(buffer.build(), COMPACTED)


def test_many_small_records_are_not_decoded_at_once() -> None:
    """They would become a hundred times the bytes that came."""
    with pytest.raises(OttlaError, match="record 1 of the batch has offset 0") as refused:
        check(bomb(NOTHING * 700_000, 700_000, 1), COMPACTED)
    assert refused.value.code is ErrorCode.INVALID_RECORD


def test_a_large_batch_of_honest_records_passes() -> None:
    """Beyond what is decoded at once the same checks hold."""
    large = BatchBuilder(compression=4)
    for number in range(50_000):
        large.append(NOW_MS + number, b"key", b"%d" % number * 20)
    assert large.size_estimate > 5 << 20
    whole = large.build()
    assert bytes(check(whole, COMPACTED).buffer) == whole
    large.append(NOW_MS, None, b"no key")
    with pytest.raises(RejectedBatch) as refused:
        check(large.build(), COMPACTED)
    assert refused.value.record_errors == (
        (50_000, "a compacted topic needs a key in each record"),
    )
    late = BatchBuilder(compression=4)
    for number in range(50_000):
        late.append(NOW_MS + 2 * HOUR_MS * (number == 7), b"key", b"%d" % number * 20)
    with pytest.raises(RejectedBatch) as refused:
        check(late.build())
    assert refused.value.code is ErrorCode.INVALID_TIMESTAMP
    assert [index for index, _ in refused.value.record_errors] == [7]


@pytest.mark.parametrize("compression", [0, 4])
def test_no_more_than_a_hundred_records_at_fault_are_listed(compression: int) -> None:
    """A megabyte may hold millions of records, and each of them listed is 60 bytes of answer."""
    late = BatchBuilder(compression=compression)
    for _ in range(5_000):
        late.append(NOW_MS + 2 * HOUR_MS, None, b"")
    with pytest.raises(RejectedBatch) as refused:
        check(late.build())
    assert refused.value.message.startswith("5000 records were refused: record 0: ")
    assert [index for index, _ in refused.value.record_errors] == list(range(100))


def test_what_a_batch_is_expanded_to_is_counted() -> None:
    """Also where that fails: then nearly all that is allowed may have been expanded."""
    expansion = Expansion()
    plain = batch(NOW_MS, NOW_MS)
    validate(memoryview(plain), CONFIG, NOW_MS, expansion=expansion)
    assert expansion.size_bytes == 0
    validate(memoryview(plain), COMPACTED, NOW_MS, expansion=expansion)
    assert expansion.size_bytes == len(plain) - 61
    damaged = bomb(bytes(2_000_000), 1)
    before = expansion.size_bytes
    with pytest.raises(OttlaError):
        validate(memoryview(damaged), COMPACTED, NOW_MS, expansion=expansion)
    assert expansion.size_bytes > before + 1_000_000
