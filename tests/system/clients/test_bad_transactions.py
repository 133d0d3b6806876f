"""Transactions as no library asks for them: each is refused with the error that Kafka gives.

`OTTLA_TEST_BROKER=kafka` holds the same against Apache Kafka.
"""

from collections.abc import Callable, Iterator

import pytest
from rig.nodes import Node

from .conftest import unique
from .test_transactions import read_committed, read_uncommitted
from .transaction_calls import Calls, Who, calls

MakeTopic = Callable[..., str]
# A timeout of more than 15 minutes is more than Kafka's brokers allow by default.
TOO_LONG_MS = 15 * 60_000 + 1


@pytest.fixture
def producer(node: Node, make_topic: MakeTopic) -> Iterator[Calls]:
    """Requests under a transactional id of its own, about a topic of its own."""
    with calls(node, unique("id"), make_topic()) as found:
        yield found


@pytest.mark.parametrize("timeout_ms", [0, -1, TOO_LONG_MS])
def test_a_timeout_must_be_one_and_not_too_long(producer: Calls, timeout_ms: int) -> None:
    """transaction.max.timeout.ms: nobody may hold readers back for longer."""
    producer.find()
    assert producer.initialize(timeout_ms)[0] == "INVALID_TRANSACTION_TIMEOUT"
    assert producer.initialize(TOO_LONG_MS - 1)[0] == "NONE"


def test_a_producer_id_needs_its_epoch(producer: Calls) -> None:
    """One without the other is no request."""
    who = producer.begin()
    half = Who(who.producer_id, -1)
    assert producer.initialize(who=half)[0] == "INVALID_REQUEST"


@pytest.mark.parametrize("away", [-1, 5])
def test_a_wrong_epoch_can_do_nothing(producer: Calls, away: int) -> None:
    """Neither that of a predecessor, nor one that nobody was given."""
    producer.begin()
    who = producer.begin()
    group = unique("group")
    producer.find(group)
    assert producer.add(who) == "NONE"
    wrong = Who(who.producer_id, who.epoch + away)

    assert producer.add(wrong) == "PRODUCER_FENCED"
    assert producer.add(wrong, version=1) == "INVALID_PRODUCER_EPOCH"
    assert producer.add_offsets(wrong, group) == "PRODUCER_FENCED"
    assert producer.commit_offset(wrong, group) == "INVALID_PRODUCER_EPOCH"
    assert producer.produce(wrong, 0) == "INVALID_PRODUCER_EPOCH"
    assert producer.produce(wrong, 0, version=12) == "INVALID_PRODUCER_EPOCH"
    assert producer.end(wrong)[0] == "PRODUCER_FENCED"
    assert producer.end(wrong, version=1)[0] == "INVALID_PRODUCER_EPOCH"
    assert producer.end(wrong, version=5)[0] == "PRODUCER_FENCED"

    assert producer.produce(who, 0) == "NONE"
    assert producer.end(who)[0] == "NONE"
    assert producer.initialize(who=wrong)[0] == "PRODUCER_FENCED"
    assert producer.initialize(who=wrong, version=3)[0] == "INVALID_PRODUCER_EPOCH"


def test_anothers_producer_id_is_not_that_of_the_transactional_id(
    producer: Calls, node: Node, make_topic: MakeTopic
) -> None:
    """Nor is one that was never given out; an id that nobody began has none."""
    with calls(node, unique("id"), make_topic()) as other:
        foreign = other.begin()
    assert producer.add(foreign) == "INVALID_PRODUCER_ID_MAPPING"
    own = producer.begin()
    for wrong in (foreign, Who(own.producer_id + 10**9, 0)):
        assert producer.add(wrong) == "INVALID_PRODUCER_ID_MAPPING"
        assert producer.end(wrong)[0] == "INVALID_PRODUCER_ID_MAPPING"
        assert producer.end(wrong, version=5)[0] == "INVALID_PRODUCER_ID_MAPPING"
        assert producer.produce(wrong, 0, version=12) == "INVALID_PRODUCER_ID_MAPPING"
    assert producer.initialize(who=foreign)[0] == "PRODUCER_FENCED"


@pytest.mark.parametrize("version", [3, 5])
def test_what_never_began_cannot_be_committed(producer: Calls, version: int) -> None:
    """Neither before the first transaction nor after one that came to its end otherwise."""
    who = producer.begin()
    assert producer.end(who, version)[0] == "INVALID_TXN_STATE"
    assert producer.add(who) == "NONE"
    error, after = producer.end(who, version, commits=False)
    assert error == "NONE"
    assert producer.end(after, version)[0] == "INVALID_TXN_STATE"


@pytest.mark.parametrize("version", [3, 5])
@pytest.mark.parametrize("commits", [True, False])
def test_an_end_can_be_asked_for_again_and_not_changed(
    producer: Calls, version: int, *, commits: bool
) -> None:
    """Its answer may have been lost; in version 5 the epoch before tells that it is the same."""
    who = producer.begin()
    assert producer.add(who) == "NONE"
    told = producer.end(who, version, commits=commits)
    assert told[0] == "NONE"
    assert producer.end(who, version, commits=commits) == told
    assert producer.end(who, version, commits=not commits)[0] == "INVALID_TXN_STATE"


def test_a_partition_that_is_not_there_cannot_be_added(producer: Calls) -> None:
    """Neither a topic nor a number that does not exist, and nothing has begun."""
    who = producer.begin()
    assert producer.add(who, partition=7) == "UNKNOWN_TOPIC_OR_PARTITION"
    assert producer.add(who, topic=unique("nowhere")) == "UNKNOWN_TOPIC_OR_PARTITION"
    assert producer.end(who)[0] == "INVALID_TXN_STATE"


def test_records_outside_of_their_producers_transaction_are_refused(producer: Calls) -> None:
    """While it is open; and records in none that was added, whatever they say of themselves."""
    who = producer.begin()
    nobody = Who(-1, -1)
    assert producer.produce(nobody, -1, transactional=False, named=False) == "NONE"
    assert producer.produce(who, 0) == "INVALID_TXN_STATE"
    assert producer.produce(who, 0, version=11) == "TRANSACTION_ABORTABLE"
    assert producer.add(who) == "NONE"
    assert producer.produce(who, 0) == "NONE"
    assert producer.produce(who, 1, transactional=False) == "INVALID_TXN_STATE"
    code = producer.produce(who, 1, named=False)
    assert code == "TRANSACTIONAL_ID_AUTHORIZATION_FAILED"
    assert producer.produce(who, 1) == "NONE"
    assert producer.end(who)[0] == "NONE"


def test_a_gap_within_a_transaction_is_out_of_order(producer: Calls, bootstrap: str) -> None:
    """What is repeated stands once; nothing of it is committed with a record missing."""
    who = producer.begin()
    assert producer.add(who) == "NONE"
    assert producer.produce(who, 0) == "NONE"
    assert producer.produce(who, 0) == "NONE"
    assert producer.produce(who, 2) == "OUT_OF_ORDER_SEQUENCE_NUMBER"
    assert producer.produce(who, 1) == "NONE"
    assert producer.end(who)[0] == "NONE"
    assert read_committed(bootstrap, producer.topic, 1, 2) == [b"value", b"value"]


def test_offsets_of_a_member_that_is_none_are_refused(producer: Calls) -> None:
    """A generation that the group does not have; or the group was not added."""
    who = producer.begin()
    group = unique("group")
    producer.find(group)
    assert producer.commit_offset(who, group) == "INVALID_TXN_STATE"
    assert producer.commit_offset(who, group, version=4) == "TRANSACTION_ABORTABLE"
    assert producer.add_offsets(who, group) == "NONE"
    assert producer.commit_offset(who, group, generation=5) == "ILLEGAL_GENERATION"
    assert producer.commit_offset(who, group) == "NONE"
    assert producer.end(who)[0] == "NONE"


def test_a_reused_transactional_id_ends_what_its_predecessor_left(
    producer: Calls, bootstrap: str
) -> None:
    """However often it is taken over; each one's records are seen or not as a whole."""
    for number in range(5):
        who = producer.begin()
        assert producer.add(who) == "NONE"
        assert producer.produce(who, 0) == "NONE"
        assert producer.produce(who, 1) == "NONE"
        if number == 2:
            assert producer.end(who)[0] == "NONE"
    producer.begin()
    assert read_committed(bootstrap, producer.topic, 1, 2) == [b"value"] * 2
    assert read_uncommitted(bootstrap, producer.topic, 1, 10) == [b"value"] * 10
