"""Encoding and decoding: versions, tags, nulls, records by reference, and what is refused."""

import pytest

from ottla.base.errors import ErrorCode, OttlaError
from ottla.wire.codec import decode, encode, encode_parts
from ottla.wire.errors import VersionError, WireError
from ottla.wire.messages.classic_membership import HeartbeatRequest, HeartbeatResponse
from ottla.wire.messages.fetch import (
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from ottla.wire.messages.groups import DescribeGroupsRequest
from ottla.wire.messages.metadata import MetadataRequest
from ottla.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from ottla.wire.parts import FileRegion, Records


def fetched(records: Records) -> FetchResponse:
    partition = PartitionData(records=records)
    return FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=[partition])])


def test_records_are_decoded_as_a_writable_slice_of_the_buffer() -> None:
    """A leader patches base offset and epoch in place, so nothing is copied."""
    partition = PartitionProduceData(index=1, records=b"abcdef")
    request = ProduceRequest(topic_data=[TopicProduceData(name="t", partition_data=[partition])])
    buffer = bytearray(encode(request, 9))
    records = decode(ProduceRequest, 9, buffer).topic_data[0].partition_data[0].records
    assert isinstance(records, memoryview)
    records[0:1] = b"X"
    assert bytes(buffer).count(b"Xbcdef") == 1


@pytest.mark.parametrize("version", [4, 12])
def test_records_are_encoded_by_reference(version: int) -> None:
    """The very object is a part; a list or tuple gives its pieces; a region is not read."""
    records = bytearray(b"abc")
    head, part, _tail = encode_parts(fetched(records), version)
    assert part is records
    region = FileRegion(fd=9, position=100, size=2**31 - 3)
    parts = encode_parts(fetched([region, b"xy"]), version)
    assert parts[1] is region
    assert parts[2] == b"xy"
    whole = encode(fetched(b"abcdef"), version)
    assert encode(fetched([b"ab", memoryview(b"cd"), b"ef"]), version) == whole
    assert encode(fetched((b"abc", b"def")), version) == whole
    assert isinstance(head, bytearray)


def test_null_and_empty_records_differ() -> None:
    """Kafka's Fetch distinguishes no records from null."""
    for version in (4, 12):
        for records in (None, memoryview(b"")):
            decoded = decode(FetchResponse, version, encode(fetched(records), version))
            assert decoded.responses[0].partitions[0].records == records


def test_unknown_tagged_fields_are_dropped() -> None:
    """A newer peer's tags, of any length, do not disturb what is known (KIP-482)."""
    plain = encode(HeartbeatResponse(throttle_time_ms=4, error_code=27), 4)
    assert plain == bytes.fromhex("00000004001b00")
    tagged = plain[:-1] + bytes.fromhex("02 05 03 aabbcc c801 00")
    decoded = decode(HeartbeatResponse, 4, tagged)
    assert decoded == HeartbeatResponse(throttle_time_ms=4, error_code=27)
    many = plain[:-1] + b"\x64" + b"\x09\x01z" * 100
    assert decode(HeartbeatResponse, 4, many) == decoded


def test_an_unknown_tag_beside_a_known_one_is_dropped() -> None:
    """In a struct with known tags the unknown ones are skipped and the known ones read."""
    request = FetchRequest(cluster_id="abc")
    encoded = encode(request, 12)
    assert encoded.endswith(bytes.fromhex("01 00 04 04616263"))
    with_unknown = encoded[:-7] + bytes.fromhex("02 00 04 04616263 2a 02 ffff")
    assert decode(FetchRequest, 12, with_unknown) == request


def test_a_known_tag_with_a_wrong_size_is_refused() -> None:
    """A tagged value must fill its own size exactly."""
    encoded = encode(FetchRequest(cluster_id="abc"), 12)
    wrong = encoded[:-5] + bytes.fromhex("05 04616263 00")
    with pytest.raises(WireError, match="own size"):
        decode(FetchRequest, 12, wrong)


def test_a_tagged_field_at_its_default_is_not_sent() -> None:
    """Defaults cost no bytes in the tagged section."""
    topic = FetchTopic(partitions=[FetchPartition()])
    full = encode(FetchRequest(topics=[topic]), 18)
    topic.partitions[0].high_watermark = 5
    assert len(encode(FetchRequest(topics=[topic]), 18)) == len(full) + 10


def test_a_value_the_version_lacks_is_refused_or_dropped() -> None:
    """Ignorable fields vanish in old versions; others with a value raise VersionError."""
    assert encode(FetchRequest(rack_id="r"), 4) == encode(FetchRequest(), 4)
    with pytest.raises(VersionError, match=r"HeartbeatRequest\.group_instance_id"):
        encode(HeartbeatRequest(group_instance_id="i"), 0)
    assert encode(HeartbeatRequest(), 0) == b"\0\0\0\0\0\0\0\0"


def test_a_field_the_version_lacks_decodes_to_its_default() -> None:
    """Old bytes give a message whose newer fields are as if nobody had set them."""
    decoded = decode(FetchRequest, 4, encode(FetchRequest(), 4))
    assert (decoded.session_epoch, decoded.rack_id, decoded.cluster_id) == (-1, "", None)


def test_a_version_that_does_not_exist_is_refused() -> None:
    """UNSUPPORTED_VERSION, whether asked to encode or to decode."""
    for version in (-1, 3, 19):
        with pytest.raises(VersionError) as caught:
            decode(FetchRequest, version, b"")
        assert caught.value.code is ErrorCode.UNSUPPORTED_VERSION
        with pytest.raises(VersionError):
            encode(FetchRequest(), version)


def test_wrong_bytes_are_an_invalid_request() -> None:
    """WireError is an OttlaError with INVALID_REQUEST and says where it failed."""
    with pytest.raises(OttlaError) as caught:
        decode(MetadataRequest, 1, b"\x00\x00")
    assert caught.value.code is ErrorCode.INVALID_REQUEST
    assert "MetadataRequest version 1" in caught.value.message


@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param("7fffffff", id="a count of two thousand million"),
        pytest.param("00000001", id="a count of one and nothing behind it"),
        pytest.param("ffffffff", id="null where null is not allowed"),
        pytest.param("fffffffe", id="a count below null"),
        pytest.param("00000001 ffff", id="a null string in a list"),
        pytest.param("00000001 0005 6162", id="a string longer than the bytes"),
        pytest.param("00000001 8000", id="a length below null"),
        pytest.param("00000001 0002 fffe", id="bytes that are no UTF-8"),
    ],
)
def test_impossible_lengths_are_refused(wrong: str) -> None:
    """Negative, huge and short lengths raise WireError before anything is allocated for them."""
    with pytest.raises(WireError):
        decode(DescribeGroupsRequest, 0, bytes.fromhex(wrong))


@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param("ffffffff0f 00", id="a count of four thousand million"),
        pytest.param("ffffffffff01 00", id="a varint of more than 32 bits"),
        pytest.param("80", id="a varint that is cut off"),
        pytest.param("00 00 00", id="null where null is not allowed"),
        pytest.param("02 00 00 00", id="a null string in a list"),
        pytest.param("01 00 ffffffff0f", id="four thousand million tags"),
        pytest.param("01 00 01 00 ffffffff0f", id="a tag longer than the bytes"),
    ],
)
def test_impossible_compact_lengths_are_refused(wrong: str) -> None:
    """The same for the forms with varints."""
    with pytest.raises(WireError):
        decode(DescribeGroupsRequest, 5, bytes.fromhex(wrong))


def test_compact_lengths_beyond_one_byte_are_read() -> None:
    """A list and a string of more than 126 need varints of two bytes."""
    request = DescribeGroupsRequest(groups=["g" * 400] + [str(n) for n in range(200)])
    encoded = encode(request, 5)
    assert encoded[:4] == bytes.fromhex("ca01 9103")
    assert decode(DescribeGroupsRequest, 5, encoded) == request
