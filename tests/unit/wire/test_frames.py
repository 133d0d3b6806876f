"""Frames: sizes, headers, and who gets which header version."""

import pytest

from ottla.wire.api import ApiKey
from ottla.wire.errors import VersionError, WireError
from ottla.wire.frames import (
    AFTER_CORRELATION_ID,
    CORRELATION_POSITION,
    SIZE_BYTES,
    FileRegion,
    Part,
    RequestHeader,
    decode_request_header,
    decode_response,
    encode_request,
    encode_response,
)
from ottla.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from ottla.wire.messages.classic_membership import HeartbeatRequest, HeartbeatResponse
from ottla.wire.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData


def joined(parts: list[Part]) -> bytes:
    return b"".join(part for part in parts if not isinstance(part, FileRegion))


def test_a_request_header_is_read_as_the_java_client_writes_it() -> None:
    """Versions 1 and 2 of the header, frozen from Kafka's Java client 4.3.1."""
    expected = RequestHeader(0, 9, 77, "tester")
    flexible = bytes.fromhex("000000090000004d000674657374657200")
    assert decode_request_header(flexible) == (expected, 17)
    plain = bytes.fromhex("000000030000004d0006746573746572")
    assert decode_request_header(b"size" + plain, 4) == (expected._replace(api_version=3), 20)


def test_a_request_header_may_lack_a_client_id() -> None:
    """A client id is null or text; empty is not null."""
    null = bytes.fromhex("000c 0000 00000001 ffff")
    assert decode_request_header(null) == (RequestHeader(12, 0, 1, None), 10)
    empty = bytes.fromhex("000c 0000 00000001 0000")
    assert decode_request_header(empty) == (RequestHeader(12, 0, 1, ""), 10)


def test_the_header_of_an_unknown_api_is_read_without_tags() -> None:
    """The broker needs key, version and correlation id to refuse it."""
    header, position = decode_request_header(bytes.fromhex("7fff 0063 00000005 0001 61 01"))
    assert header == RequestHeader(32767, 99, 5, "a")
    assert position == 11


def test_a_version_above_ours_still_has_a_flexible_header() -> None:
    """A newer client's ApiVersions is read so far that it can be answered (KIP-511)."""
    header, position = decode_request_header(bytes.fromhex("0012 0005 00000001 0001 61 00 02"))
    assert header == RequestHeader(18, 5, 1, "a")
    assert position == 12


def test_tags_of_a_request_header_are_skipped() -> None:
    """Unknown tags in the header do not move the body."""
    tagged = bytes.fromhex("000c 0004 00000001 0001 61 01 07 02 abcd 55")
    assert decode_request_header(tagged)[1] == len(tagged) - 1


@pytest.mark.parametrize(
    "wrong",
    [
        "",
        "000c 0004 0000",
        "000c 0004 00000001 0005 61",
        "000c 0004 00000001 fffe",
        "000c 0000 00000001 0001 ff",
        "000c 0004 00000001 0001 61",
        "000c 0004 00000001 0001 61 01 07 7f",
        "000c 0004 00000001 0001 61 ffffffffff",
    ],
)
def test_a_wrong_request_header_is_refused(wrong: str) -> None:
    """Cut off, with impossible lengths or with bytes that are no text: WireError."""
    with pytest.raises(WireError):
        decode_request_header(bytes.fromhex(wrong))


def test_a_request_carries_its_size_and_header() -> None:
    """The first 4 bytes count all that follow them."""
    request = HeartbeatRequest(group_id="g", generation_id=2, member_id="m")
    assert joined(encode_request(request, 0, 5, "me")) == bytes.fromhex(
        "00000016 000c 0000 00000005 0002 6d65 0001 67 00000002 0001 6d"
    )
    assert joined(encode_request(request, 4, 5, None)) == bytes.fromhex(
        "00000015 000c 0004 00000005 ffff 00 02 67 00000002 02 6d 00 00"
    )


def test_a_request_with_records_counts_them_without_copying() -> None:
    """The size includes parts that are only referred to."""
    records = memoryview(bytes(1000))
    partition = PartitionProduceData(records=records)
    request = ProduceRequest(topic_data=[TopicProduceData(name="t", partition_data=[partition])])
    parts = encode_request(request, 9, 1, "c")
    assert parts[1] is records
    whole = joined(parts)
    assert int.from_bytes(whole[:4]) == len(whole) - 4
    header, position = decode_request_header(whole, 4)
    assert header == RequestHeader(0, 9, 1, "c")
    assert whole[position:].startswith(b"\x00\x00\x00")


def test_a_response_with_a_region_of_a_file_counts_it() -> None:
    """A region's size is part of the frame's; its bytes are never read here."""
    region = FileRegion(fd=5, position=4096, size=50_000)
    topic = FetchableTopicResponse(topic="t", partitions=[PartitionData(records=region)])
    parts = encode_response(FetchResponse(responses=[topic]), 1, 12, 3)
    assert parts[1] == region
    assert int.from_bytes(joined(parts)[:4]) == len(joined(parts)) - 4 + 50_000


def test_a_response_has_the_header_of_its_version() -> None:
    """Flexible versions have a tag count in the header, older ones have not."""
    response = HeartbeatResponse(throttle_time_ms=1, error_code=2)
    assert joined(encode_response(response, 12, 3, 9)) == bytes.fromhex(
        "0000000a 00000009 00000001 0002"
    )
    assert joined(encode_response(response, 12, 4, 9)) == bytes.fromhex(
        "0000000c 00000009 00 00000001 0002 00"
    )


def test_the_answer_to_api_versions_never_has_a_flexible_header() -> None:
    """A client reads it before it knows the broker's versions (KIP-511)."""
    answer = joined(encode_response(ApiVersionsResponse(error_code=35), 18, 3, 9))
    assert answer == bytes.fromhex("0000000c 00000009 0023 01 00000000 00")
    assert decode_response(18, 3, answer, 4) == (9, ApiVersionsResponse(error_code=35))


def test_a_response_is_read_back() -> None:
    """decode_response undoes encode_response, and skips tags of the header."""
    response = HeartbeatResponse(throttle_time_ms=1, error_code=2)
    for version in (0, 3, 4):
        if version == 0:
            response.throttle_time_ms = 0
        encoded = joined(encode_response(response, 12, version, 9))
        assert decode_response(12, version, encoded, 4) == (9, response)
    tagged = bytes.fromhex("00000009 01 03 01 ff 00000000 0002 00")
    assert decode_response(12, 4, tagged) == (9, response)


def test_a_wrong_response_is_refused() -> None:
    """A response that is cut off raises WireError, an unknown key VersionError."""
    with pytest.raises(WireError):
        decode_response(12, 4, b"\0\0\0")
    with pytest.raises(WireError):
        decode_response(12, 4, b"\0\0\0\1")
    with pytest.raises(VersionError):
        decode_response(999, 0, b"\0\0\0\1")


def test_a_request_names_the_client_software() -> None:
    """ApiVersions 3 and up is asked with a flexible header though answered without."""
    request = ApiVersionsRequest(client_software_name="x", client_software_version="1")
    assert joined(encode_request(request, 3, 1, None)) == bytes.fromhex(
        "00000010 0012 0003 00000001 ffff 00 02 78 02 31 00"
    )


def test_correlation_ids_stand_where_the_constants_say() -> None:
    """In a request behind API key and version, in a response behind its size."""
    request = b"".join(map(bytes, encode_request(HeartbeatRequest(), 4, 0x01020304, "me")))
    frame = request[SIZE_BYTES:]
    assert frame[CORRELATION_POSITION:AFTER_CORRELATION_ID] == b"\1\2\3\4"
    assert frame[AFTER_CORRELATION_ID:].startswith(b"\0\2me")
    response = b"".join(
        map(bytes, encode_response(HeartbeatResponse(), ApiKey.HEARTBEAT, 4, 0x01020304))
    )
    assert response[CORRELATION_POSITION:AFTER_CORRELATION_ID] == b"\1\2\3\4"
