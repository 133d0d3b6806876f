"""Error codes, epochs and descriptions of groups of every kind: Kafka's and ours are the same.

Each test runs against us and against Apache Kafka; what it expects is what Kafka 4.3.1 says.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from rig.wire_client import WireClient

from ottla.base.errors import ErrorCode
from ottla.wire.messages.consumer_groups import (
    ConsumerGroupDescribeRequest,
    ShareGroupDescribeRequest,
    TopicPartitions,
)
from ottla.wire.messages.group_offsets import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from ottla.wire.messages.groups import DescribeGroupsRequest
from ottla.wire.messages.transactions import (
    AddOffsetsToTxnRequest,
    EndTxnRequest,
    InitProducerIdRequest,
)
from tests.integration.groups.either import connected, start
from tests.integration.groups.kinds import (
    KINDS,
    TOPIC,
    Who,
    beat,
    classic_joins,
    commit,
    consumer_joins,
    join_request,
    patiently,
    share_joins,
    topic_id,
)

TABLE = Path(__file__).with_name("offset_codes.txt")


@pytest.fixture
def wire(either: WireClient) -> WireClient:
    """A connection to the only broker of a cluster."""
    return either


class Transaction:
    """One producer that commits offsets in transactions, each of which it aborts."""

    def __init__(self, wire: WireClient, version: int) -> None:
        self._wire, self._version = wire, version
        self._id = f"transaction-{uuid4()}"
        self._renews = version >= 5
        begin = InitProducerIdRequest(transactional_id=self._id, transaction_timeout_ms=60_000)
        begun = patiently(lambda: wire.call(begin, 4))
        self._producer = {
            "producer_id": begun.producer_id,
            "producer_epoch": begun.producer_epoch,
        }

    def commit(self, group: str, who: Who, partitions: tuple[int, ...] = (0,)) -> list[ErrorCode]:
        """What each partition is answered."""
        own = {"transactional_id": self._id, "group_id": group, **self._producer}
        if not self._renews:
            patiently(lambda: self._wire.call(AddOffsetsToTxnRequest(**own), 3))
        request = TxnOffsetCommitRequest(
            **own,
            generation_id=who.epoch,
            member_id=who.member_id,
            topics=[
                TxnOffsetCommitRequestTopic(
                    name=TOPIC,
                    partitions=[
                        TxnOffsetCommitRequestPartition(
                            partition_index=each, committed_offset=5, committed_metadata=""
                        )
                        for each in partitions
                    ],
                )
            ],
        )
        answer = patiently(
            lambda: self._wire.call(request, self._version),
            lambda each: each.topics[0].partitions[0].error_code,
        )
        end = EndTxnRequest(transactional_id=self._id, **self._producer, committed=False)
        ended = patiently(lambda: self._wire.call(end, 5 if self._renews else 3))
        assert ended.error_code == ErrorCode.NONE
        if self._renews:
            self._producer = {
                "producer_id": ended.producer_id,
                "producer_epoch": ended.producer_epoch,
            }
        return [ErrorCode(each.error_code) for each in answer.topics[0].partitions]


def fetch(wire: WireClient, group: str, member_id: str | None, epoch: int, version: int) -> str:
    """The group's error code."""
    topic = OffsetFetchRequestTopic(partition_indexes=[0])
    if version < 10:
        topic.name = TOPIC
    else:
        topic.topic_id = topic_id(wire)
    asked = OffsetFetchRequestGroup(
        group_id=group, member_id=member_id, member_epoch=epoch, topics=[topic]
    )
    answer = patiently(
        lambda: wire.call(OffsetFetchRequest(groups=[asked]), version),
        lambda each: each.groups[0].error_code,
    )
    return ErrorCode(answer.groups[0].error_code).name


def callers(member: Who) -> dict[str, tuple[str | None, int]]:
    """Member ids and epochs, of which at most one is a member's in its epoch."""
    member_id, epoch = member
    return {
        "null,-1": (None, -1),
        "empty,-1": ("", -1),
        "empty,0": ("", 0),
        "empty,E": ("", epoch),
        "other,-1": ("other", -1),
        "other,0": ("other", 0),
        "other,E": ("other", epoch),
        "member,-2": (member_id, -2),
        "member,-1": (member_id, -1),
        "member,0": (member_id, 0),
        "member,E": (member_id, epoch),
        "member,E+1": (member_id, epoch + 1),
    }


def asked_of(wire: WireClient) -> dict[str, Callable[[str, str | None, int], str]]:
    """Each request about offsets, by the column of the table; it gives the name of its code."""
    early, late = Transaction(wire, 3), Transaction(wire, 5)

    def committing(version: int) -> Callable[[str, str | None, int], str]:
        return lambda group, member_id, epoch: (
            commit(wire, group, Who(member_id or "", epoch), version=version)[0].name
        )

    def fetching(version: int) -> Callable[[str, str | None, int], str]:
        return lambda group, member_id, epoch: fetch(wire, group, member_id, epoch, version)

    def in_transaction(transaction: Transaction) -> Callable[[str, str | None, int], str]:
        return lambda group, member_id, epoch: (
            transaction.commit(group, Who(member_id or "", epoch))[0].name
        )

    return {
        "commit-2": committing(2),
        "commit-8": committing(8),
        "commit-9": committing(9),
        "commit-10": committing(10),
        "fetch-9": fetching(9),
        "fetch-10": fetching(10),
        "txn-3": in_transaction(early),
        "txn-5": in_transaction(late),
    }


def expected_rows() -> dict[tuple[str, str], list[str]]:
    """Codes by kind of group and caller, in the order of the columns."""
    rows = {}
    for line in TABLE.read_text().splitlines():
        if line and not line.startswith("#"):
            kind, caller, *codes = line.split()
            rows[kind, caller] = codes
    return rows


@pytest.mark.parametrize("kind", list(KINDS))
def test_who_may_commit_and_fetch_offsets(wire: WireClient, group: str, kind: str) -> None:
    """Every API of offsets, in its versions, by callers that are members and that are not."""
    requests = asked_of(wire)
    found: dict[tuple[str, str], list[str]] = {}
    for caller in callers(Who("", 0)):
        codes = []
        for column, ask in requests.items():
            if caller.startswith("null") and not column.startswith("fetch"):
                codes.append("-")
                continue
            own = f"{group}-{caller}-{column}"
            codes.append(ask(own, *callers(KINDS[kind](wire, own))[caller]))
        found[kind, caller] = codes
    expected = {each: codes for each, codes in expected_rows().items() if each[0] == kind}
    assert found == expected


@pytest.mark.parametrize(
    ("fields", "epoch"),
    [
        ({}, 2),
        ({"subscribed_topic_names": ["absent"]}, 2),
        ({"subscribed_topic_regex": "t.*"}, 2),
        ({"subscribed_topic_names": None, "subscribed_topic_regex": "t.*"}, 1),
        ({"subscribed_topic_names": None, "subscribed_topic_regex": "absent.*"}, 1),
        ({"subscribed_topic_names": []}, 1),
    ],
)
def test_the_first_epoch_of_a_consumer_group(
    wire: WireClient, group: str, fields: dict[str, Any], epoch: int
) -> None:
    """Topic names raise the epoch 1 that a group is created with; a pattern does so later."""
    assert consumer_joins(wire, group, **fields).member_epoch == epoch


@pytest.mark.parametrize("topics", [[TOPIC], ["absent"]])
def test_the_first_epochs_of_a_share_group(wire: WireClient, group: str, topics: list[str]) -> None:
    """The second member finds an epoch that its own join, or the state of topics, has raised."""
    assert share_joins(wire, group, topics).member_epoch == 2
    if topics == ["absent"]:
        assert share_joins(wire, group, topics).member_epoch == 3


def test_epochs_that_follow(wire: WireClient, group: str) -> None:
    """Members and topics raise the epoch; a member without topics does not, until it leaves."""
    first = consumer_joins(wire, group)
    second = consumer_joins(wire, group)
    none = consumer_joins(wire, group, subscribed_topic_names=[])
    assert [each.member_epoch for each in (first, second, none)] == [2, 3, 3]
    epochs, answer = [], none
    for names in ([TOPIC], [TOPIC, "absent"], ["absent"]):
        epoch = answer.member_epoch
        answer = beat(wire, group, none.member_id, epoch, subscribed_topic_names=names)
        assert answer.error_code == ErrorCode.NONE
        epochs.append(group_epoch(wire, group))
    beat(wire, group, first.member_id, -1)
    epochs.append(group_epoch(wire, group))
    assert epochs == [4, 5, 6, 7]


def group_epoch(wire: WireClient, group: str) -> int:
    described = wire.call(ConsumerGroupDescribeRequest(group_ids=[group]), 1).groups[0]
    assert described.error_code == ErrorCode.NONE
    epoch: int = described.group_epoch
    return epoch


def held(wire: WireClient, *partitions: int) -> list[TopicPartitions]:
    """What a member reports that it has."""
    return [TopicPartitions(topic_id=topic_id(wire), partitions=list(partitions))]


def test_partitions_to_be_given_back_are_described_with_their_member(
    wire: WireClient, group: str
) -> None:
    """The member may still read them; where there is no pattern it is an empty one, not null."""
    first = consumer_joins(wire, group)
    beat(wire, group, first.member_id, 2, topic_partitions=held(wire, 0, 1, 2))
    second = consumer_joins(wire, group)
    beat(wire, group, first.member_id, 2, topic_partitions=held(wire, 0, 1, 2))
    described = wire.call(ConsumerGroupDescribeRequest(group_ids=[group]), 1).groups[0]
    members = {each.member_id: each for each in described.members}

    def count(assignment: Any) -> int:
        return sum(len(each.partitions) for each in assignment.topic_partitions)

    assert count(members[first.member_id].assignment) == 3
    assert count(members[first.member_id].target_assignment) == 2
    assert count(members[second.member_id].assignment) == 0
    assert [each.subscribed_topic_regex for each in described.members] == ["", ""]


def test_a_commit_of_an_earlier_epoch_counts_for_partitions_kept_since(
    wire: WireClient, group: str
) -> None:
    """KIP-1251; a partition that the member has lost, or got later, spoils the whole commit."""
    first = consumer_joins(wire, group).member_id
    beat(wire, group, first, 2, topic_partitions=held(wire, 0, 1, 2))
    consumer_joins(wire, group)
    told = beat(wire, group, first, 2, topic_partitions=held(wire, 0, 1, 2))
    (given,) = told.assignment.topic_partitions
    kept = tuple(given.partitions)
    (lost,) = {0, 1, 2} - set(kept)
    both = (*kept, lost)
    none, stale = ErrorCode.NONE, ErrorCode.STALE_MEMBER_EPOCH
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert commit(wire, group, Who(first, 2), both) == [none] * 3, "it has yet to give it back"
    assert beat(wire, group, first, 2, topic_partitions=held(wire, *kept)).member_epoch == 3
    assert commit(wire, group, Who(first, 3), both) == [none] * 3
    assert commit(wire, group, Who(first, 2), kept) == [none] * 2
    assert commit(wire, group, Who(first, 2), both) == [stale] * 3
    assert commit(wire, group, Who(first, 1), kept) == [stale] * 2
    assert commit(wire, group, Who(first, 1), (*kept, 99)) == [stale, stale, unknown]
    transaction = Transaction(wire, 5)
    illegal = ErrorCode.ILLEGAL_GENERATION
    assert transaction.commit(group, Who(first, 2), kept) == [none] * 2
    assert transaction.commit(group, Who(first, 2), both) == [illegal] * 3
    assert fetch(wire, group, first, 2, 9) == "STALE_MEMBER_EPOCH"
    # A process that joins again under its id keeps them.
    assert consumer_joins(wire, group, member_id=first).member_epoch == 3
    assert commit(wire, group, Who(first, 2), kept) == [none] * 2


GROUP_OPERATIONS = 1 << 3 | 1 << 6 | 1 << 8 | 1 << 10 | 1 << 11
NOT_ASKED = -(2**31)


@pytest.mark.parametrize(
    ("kind", "request_type", "version", "code", "operations"),
    [
        ("consumer", ConsumerGroupDescribeRequest, 0, "NONE", GROUP_OPERATIONS),
        ("empty-consumer", ConsumerGroupDescribeRequest, 1, "NONE", GROUP_OPERATIONS),
        ("mixed", ConsumerGroupDescribeRequest, 1, "NONE", GROUP_OPERATIONS),
        ("absent", ConsumerGroupDescribeRequest, 1, "GROUP_ID_NOT_FOUND", NOT_ASKED),
        ("classic", ConsumerGroupDescribeRequest, 1, "GROUP_ID_NOT_FOUND", NOT_ASKED),
        ("share", ShareGroupDescribeRequest, 1, "NONE", GROUP_OPERATIONS),
        ("classic", ShareGroupDescribeRequest, 1, "GROUP_ID_NOT_FOUND", NOT_ASKED),
        ("classic", DescribeGroupsRequest, 3, "NONE", GROUP_OPERATIONS),
        ("classic", DescribeGroupsRequest, 6, "NONE", GROUP_OPERATIONS),
        ("simple", DescribeGroupsRequest, 6, "NONE", GROUP_OPERATIONS),
        ("absent", DescribeGroupsRequest, 5, "NONE", GROUP_OPERATIONS),
        ("absent", DescribeGroupsRequest, 6, "GROUP_ID_NOT_FOUND", NOT_ASKED),
        ("consumer", DescribeGroupsRequest, 5, "NONE", GROUP_OPERATIONS),
        ("consumer", DescribeGroupsRequest, 6, "GROUP_ID_NOT_FOUND", NOT_ASKED),
    ],
)
def test_authorized_operations_are_told_where_asked(
    wire: WireClient,
    group: str,
    kind: str,
    request_type: Any,
    version: int,
    code: str,
    operations: int,
) -> None:
    """All that there are for groups, since nothing is forbidden; none of a group with an error."""
    KINDS[kind](wire, group)
    name = "groups" if request_type is DescribeGroupsRequest else "group_ids"
    for asks in (True, False):
        request = request_type(**{name: [group]}, include_authorized_operations=asks)
        (described,) = wire.call(request, version).groups
        assert ErrorCode(described.error_code).name == code
        assert described.authorized_operations == (operations if asks else NOT_ASKED)


@pytest.mark.parametrize(
    ("kind", "words"),
    [("absent", "not found."), ("consumer", "is not a classic group."), ("share", "is not a")],
)
def test_why_a_group_is_not_described(wire: WireClient, group: str, kind: str, words: str) -> None:
    """The message tells an absent group from one of another type."""
    KINDS[kind](wire, group)
    (described,) = wire.call(DescribeGroupsRequest(groups=[group]), 6).groups
    assert f"Group {group} {words}" in described.error_message


@pytest.mark.parametrize("metadata", [b"", b"?", None])
def test_a_classic_join_to_a_consumer_group_gets_its_id_first(
    wire: WireClient, group: str, metadata: bytes | None
) -> None:
    """Before anybody looks at what it brings."""
    KINDS["consumer"](wire, group)
    answer = wire.call(join_request(group, metadata=metadata), 5)
    assert answer.error_code == ErrorCode.MEMBER_ID_REQUIRED
    assert answer.member_id


def test_a_refused_classic_join_names_no_member(wire: WireClient, group: str) -> None:
    """The id in a refusal is the empty one where the group is not of the classic protocol."""
    KINDS["consumer"](wire, group)
    answer = wire.call(join_request(group, "other", instance_id="new"), 5)
    assert (answer.error_code, answer.member_id) == (ErrorCode.UNKNOWN_MEMBER_ID, "")
    KINDS["share"](wire, f"{group}-share")
    answer = wire.call(join_request(f"{group}-share", "other"), 5)
    assert (answer.error_code, answer.member_id) == (ErrorCode.INCONSISTENT_GROUP_PROTOCOL, "")


@pytest.mark.parametrize("which", ["ottla", "kafka"])
def test_without_migration_no_protocol_comes_to_the_other(which: str, group: str) -> None:
    """`disabled` holds both ways, for every join to a group with members."""
    more = {"group.consumer.migration.policy": "disabled"}
    with start(which, **more) as running, connected(running.port) as wire:
        consumer = KINDS["consumer"](wire, group)
        for request in (
            join_request(group),
            join_request(group, metadata=b""),
            join_request(group, consumer.member_id),
            join_request(group, instance_id="i"),
        ):
            for version in (3, 5, 9):
                if version == 3:
                    request.group_instance_id = None
                answer = wire.call(request, version)
                told = (answer.error_code, answer.member_id)
                assert told == (ErrorCode.INCONSISTENT_GROUP_PROTOCOL, "")
        beat(wire, group, consumer.member_id, -1)
        assert classic_joins(wire, group).error_code == ErrorCode.NONE
        answer = consumer_joins(wire, group)
        assert answer.error_code == ErrorCode.GROUP_ID_NOT_FOUND
