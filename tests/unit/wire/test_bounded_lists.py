"""Lists of requests: how many elements all of them may have together."""

import pytest

from ottla.wire.codec import ELEMENTS_MAX, decode, decode_bounded, encode
from ottla.wire.errors import WireError
from ottla.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
)
from ottla.wire.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreateTopicsRequest,
)


def deletions(count: int) -> bytes:
    deletion = ScramCredentialDeletion(name="", mechanism=0)
    return encode(AlterUserScramCredentialsRequest(deletions=[deletion] * count), 0)


def test_a_list_has_so_many_elements() -> None:
    """One more is refused; `decode` by itself bounds nothing but by the bytes that came."""
    most = decode_bounded(AlterUserScramCredentialsRequest, 0, deletions(ELEMENTS_MAX))
    assert len(most.deletions) == ELEMENTS_MAX
    more = deletions(ELEMENTS_MAX + 1)
    with pytest.raises(WireError, match="too many elements of lists"):
        decode_bounded(AlterUserScramCredentialsRequest, 0, more)
    assert len(decode(AlterUserScramCredentialsRequest, 0, more).deletions) == ELEMENTS_MAX + 1


def test_lists_in_lists_count_together() -> None:
    """Numbers and structures alike: 50 topics of 50 assignments to 99 brokers are 250,050."""
    assignment = CreatableReplicaAssignment(partition_index=0, broker_ids=[1] * 99)
    topics = [CreatableTopic(name="t", assignments=[assignment] * 50)] * 50
    fits = encode(CreateTopicsRequest(topics=topics[1:]), 7)
    assert len(decode_bounded(CreateTopicsRequest, 7, fits).topics) == 49
    with pytest.raises(WireError, match="too many elements"):
        decode_bounded(CreateTopicsRequest, 7, encode(CreateTopicsRequest(topics=topics), 7))


def test_null_lists_have_no_elements() -> None:
    """And both decoders read the same."""
    request = AlterUserScramCredentialsRequest(deletions=[], upsertions=[])
    content = encode(request, 0)
    assert decode_bounded(AlterUserScramCredentialsRequest, 0, content) == request


def test_a_string_has_so_many_bytes() -> None:
    """32,767 as in Kafka, where the length of a compact string could say more."""
    for size in (32_767, 32_768):
        topics = [CreatableTopic(name="t" * size)]
        sent = encode(CreateTopicsRequest(topics=topics), 7)
        assert len(decode(CreateTopicsRequest, 7, sent).topics[0].name) == size
        if size == 32_767:
            decode_bounded(CreateTopicsRequest, 7, sent)
        else:
            with pytest.raises(WireError, match="more than 32,767 bytes"):
                decode_bounded(CreateTopicsRequest, 7, sent)
