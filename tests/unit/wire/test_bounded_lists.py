"""Lists of requests: how many elements all of them may have together, and how they are decoded."""

import pytest
from rig.declared import declared
from rig.large_requests import growing

from ottla.wire.codec import decode, decode_in_steps, encode
from ottla.wire.errors import TooManyBytes, WireError
from ottla.wire.frames import encode_response, encode_response_in_steps
from ottla.wire.messages.metadata import MetadataRequest, MetadataResponse, MetadataResponseTopic
from ottla.wire.messages.topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreateTopicsRequest,
)
from ottla.wire.messages.user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
)
from ottla.wire.primitive import TAGS_MAX
from ottla.wire.source import STEP

MOST = 1_000
EVERY = list(growing({key: request.__versions__ for key, (request, _) in declared().items()}))


def deletions(count):
    deletion = ScramCredentialDeletion(name="", mechanism=0)
    return encode(AlterUserScramCredentialsRequest(deletions=[deletion] * count), 0)


def steps_of(generator):
    """How often it pauses, and what it returns."""
    pauses = 0
    while True:
        try:
            next(generator)
        except StopIteration as end:
            return pauses, end.value
        pauses += 1


def bounded(kind, version, sent):
    return steps_of(decode_in_steps(kind, version, sent, 0, MOST))[1]


def test_a_list_has_so_many_elements():
    """One more is refused; `decode` by itself bounds nothing but by the bytes that came."""
    most = bounded(AlterUserScramCredentialsRequest, 0, deletions(MOST))
    assert len(most.deletions) == MOST
    more = deletions(MOST + 1)
    with pytest.raises(WireError, match="too many elements of lists"):
        bounded(AlterUserScramCredentialsRequest, 0, more)
    assert len(decode(AlterUserScramCredentialsRequest, 0, more).deletions) == MOST + 1


def test_lists_in_lists_count_together():
    """Numbers and structures alike: 10 topics of 1 assignment to 98 brokers are 1,000."""
    assignment = CreatableReplicaAssignment(partition_index=0, broker_ids=[1] * 98)
    topics = [CreatableTopic(name="t", assignments=[assignment])] * 11
    fits = encode(CreateTopicsRequest(topics=topics[1:]), 7)
    assert len(bounded(CreateTopicsRequest, 7, fits).topics) == 10
    with pytest.raises(WireError, match="too many elements"):
        bounded(CreateTopicsRequest, 7, encode(CreateTopicsRequest(topics=topics), 7))


def test_null_lists_have_no_elements():
    """And both decoders read the same."""
    request = AlterUserScramCredentialsRequest(deletions=[], upsertions=[])
    content = encode(request, 0)
    assert bounded(AlterUserScramCredentialsRequest, 0, content) == request


def test_a_string_has_so_many_bytes():
    """32,767 as in Kafka, where the length of a compact string could say more."""
    for size in (32_767, 32_768):
        topics = [CreatableTopic(name="t" * size)]
        sent = encode(CreateTopicsRequest(topics=topics), 7)
        assert len(decode(CreateTopicsRequest, 7, sent).topics[0].name) == size
        if size == 32_767:
            bounded(CreateTopicsRequest, 7, sent)
        else:
            with pytest.raises(WireError, match="more than 32,767 bytes"):
                bounded(CreateTopicsRequest, 7, sent)


@pytest.mark.parametrize("count", [TAGS_MAX, TAGS_MAX + 1, 5_000_000])
def test_a_section_has_so_many_tagged_fields(count):
    """More are refused by their number, before they are read; a few unknown ones are skipped."""
    sent = bytearray(encode(MetadataRequest(), 12))
    assert sent.pop() == 0
    low, rest = count & 127, count >> 7
    sent += bytes([low] if not rest else [low | 128, rest & 127])
    if rest > 127:
        sent[-1] |= 128
        sent += bytes([rest >> 7 & 127 | 128, rest >> 14])
    sent += b"\x63\0" * min(count, 200)
    if count <= TAGS_MAX:
        assert decode(MetadataRequest, 12, bytes(sent)) == MetadataRequest()
        assert bounded(MetadataRequest, 12, bytes(sent)) == MetadataRequest()
        return
    for read in (decode, bounded):
        with pytest.raises(WireError, match="tagged fields"):
            read(MetadataRequest, 12, bytes(sent))


@pytest.mark.parametrize("each", EVERY[:: max(1, len(EVERY) // 150)], ids=str)
def test_steps_read_what_one_go_reads(each):
    """Of every list of every API, with a pause for each STEP elements that are no numbers."""
    request = each.request(2 * STEP + 1)
    sent = encode(request, each.version)
    pauses, read = steps_of(decode_in_steps(type(request), each.version, sent, 0, 100_000))
    assert read == decode(type(request), each.version, sent)
    assert pauses != 1


def test_steps_write_what_one_go_writes():
    """An answer in steps has the same bytes, with a pause for each STEP elements."""
    names = [MetadataResponseTopic(name=f"t{n}") for n in range(STEP * 4)]
    response = MetadataResponse(topics=names)
    pauses, parts = steps_of(encode_response_in_steps(response, 3, 12, 7, 1 << 20))
    assert pauses == 3
    assert b"".join(map(bytes, parts)) == b"".join(map(bytes, encode_response(response, 3, 12, 7)))


def test_a_response_that_gets_too_large_is_not_written_to_its_end():
    """After the step in which it passes the limit nothing more is encoded."""
    names = [MetadataResponseTopic(name=f"t{n}") for n in range(STEP * 100)]
    response = MetadataResponse(topics=names)
    with pytest.raises(TooManyBytes):
        steps_of(encode_response_in_steps(response, 3, 12, 7, 20_000))
