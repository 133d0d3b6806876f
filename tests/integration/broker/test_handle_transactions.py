"""Transactions as single requests tell of them, in every version there is."""

import asyncio
from dataclasses import replace

import pytest

from ottla.base.errors import ErrorCode
from ottla.base.ids import TopicPartition
from ottla.coordination.memory.memory import MemoryStore
from ottla.record.builder import BatchBuilder
from ottla.storage.disk.memory_filesystem import MemoryFileSystem
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.group_offsets import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.wire.messages.topics import DeleteTopicsRequest, DeleteTopicState
from ottla.wire.messages.transaction_listings import (
    DescribeTransactionsRequest,
    ListTransactionsRequest,
)
from ottla.wire.messages.transactions import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
    EndTxnRequest,
    InitProducerIdRequest,
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from tests.integration.broker.inprocess import run

FEW = {"transaction.state.log.num.partitions": "3", "offsets.topic.num.partitions": "3"}


async def begin(caller, name="x", topics=("t",), timeout_ms=60_000):
    """Topics, and a producer of a transactional id: (producer id, epoch)."""
    for topic in topics:
        await caller.broker.parts.metadata.topics.auto_create(topic)
    await caller.call(FindCoordinatorRequest(key=name, key_type=1), 3)
    request = InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=timeout_ms)
    answer = await caller.call(request, 4)
    assert answer.error_code == 0
    return answer.producer_id, answer.producer_epoch


async def add(caller, who, *partitions, version=3, name="x"):
    """AddPartitionsToTxn of a client; the codes in the order of the partitions."""
    request = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=name,
        v3_and_below_producer_id=who[0],
        v3_and_below_producer_epoch=who[1],
        v3_and_below_topics=[
            AddPartitionsToTxnTopic(name=topic, partitions=[index]) for topic, index in partitions
        ],
    )
    answer = await caller.call(request, version)
    return [
        ErrorCode(topic.results_by_partition[0].partition_error_code).name
        for topic in answer.results_by_topic_v3_and_below
    ]


async def produce(caller, who, sequence, *, version, topic="t", name="x"):
    """One record in the transaction; the code."""
    builder = BatchBuilder(
        producer_id=who[0], producer_epoch=who[1], base_sequence=sequence, transactional=True
    )
    builder.append(caller.broker.runtime.clock.now_ms(), None, b"value")
    data = PartitionProduceData(index=0, records=builder.build())
    request = ProduceRequest(
        transactional_id=name,
        acks=-1,
        timeout_ms=10_000,
        topic_data=[TopicProduceData(name=topic, partition_data=[data])],
    )
    answer = await caller.call(request, version)
    return ErrorCode(answer.responses[0].partition_responses[0].error_code).name


async def end(caller, who, version, *, committed=True, name="x"):
    request = EndTxnRequest(
        transactional_id=name, producer_id=who[0], producer_epoch=who[1], committed=committed
    )
    return await caller.call(request, version)


async def state(caller, name="x"):
    request = DescribeTransactionsRequest(transactional_ids=[name])
    (told,) = (await caller.call(request, 0)).transaction_states
    return told


async def complete(caller, name="x"):
    """Wait until the markers are written, and tell the state."""
    while True:
        told = await state(caller, name)
        if told.transaction_state.startswith("Complete"):
            return told
        await asyncio.sleep(0.01)


def stable(caller, topic="t"):
    partition = caller.broker.partitions.get(topic, 0)
    return partition.last_stable_offset, partition.high_watermark


@pytest.mark.parametrize("version", range(4))
def test_older_clients_add_partitions_and_keep_their_epoch(version):
    """AddPartitionsToTxn 0-3, Produce 9, EndTxn 0-3."""

    async def scenario(caller):
        who = await begin(caller)
        assert await add(caller, who, ("t", 0), version=version) == ["NONE"]
        assert await produce(caller, who, 0, version=9) == "NONE"
        assert stable(caller) == (0, 1)
        answer = await end(caller, who, version)
        assert answer.error_code == 0
        told = await complete(caller)
        assert (told.transaction_state, told.producer_epoch) == ("CompleteCommit", 0)
        assert stable(caller) == (2, 2)

    run(scenario, FEW)


def test_newer_clients_leave_adding_to_the_leader_and_get_a_new_epoch():
    """Produce 12, EndTxn 5 (KIP-890); the next transaction waits for the markers of the last."""

    async def scenario(caller):
        who = await begin(caller)
        for number in range(3):
            assert await produce(caller, who, 0, version=12) == "NONE"
            assert await produce(caller, who, 1, version=12) == "NONE"
            answer = await end(caller, who, 5, committed=number != 1)
            assert answer.error_code == 0
            assert (answer.producer_id, answer.producer_epoch) == (who[0], number + 1)
            who = (answer.producer_id, answer.producer_epoch)
        assert (await complete(caller)).producer_epoch == 3
        partition = caller.broker.partitions.get("t", 0)
        (aborted,) = partition.log.segments.aborted_transactions(0, 9)
        assert (aborted.first_offset, aborted.last_offset) == (3, 5)

    run(scenario, FEW)


@pytest.mark.parametrize(
    ("version", "code"), [(9, "INVALID_TXN_STATE"), (11, "TRANSACTION_ABORTABLE")]
)
def test_what_was_not_added_is_refused(version, code):
    """KIP-890: as the version of the producer knows it; nothing holds readers back."""

    async def scenario(caller):
        who = await begin(caller, topics=("t", "u"))
        assert await add(caller, who, ("u", 0)) == ["NONE"]
        assert await produce(caller, who, 0, version=version) == code
        assert stable(caller) == (0, 0)
        assert await produce(caller, who, 0, version=version, topic="u") == "NONE"

    run(scenario, FEW)


def test_one_bad_partition_fails_the_request_for_all():
    """The others are told that nothing was attempted."""

    async def scenario(caller):
        who = await begin(caller)
        codes = await add(caller, who, ("t", 0), ("nowhere", 0))
        assert codes == ["OPERATION_NOT_ATTEMPTED", "UNKNOWN_TOPIC_OR_PARTITION"]
        assert (await state(caller)).transaction_state == "Empty"

    run(scenario, FEW)


def test_the_fenced_are_told_as_their_version_knows_it():
    """INVALID_PRODUCER_EPOCH before there was PRODUCER_FENCED."""

    async def scenario(caller):
        zombie = await begin(caller)
        await begin(caller)
        assert await add(caller, zombie, ("t", 0), version=1) == ["INVALID_PRODUCER_EPOCH"]
        assert await add(caller, zombie, ("t", 0), version=2) == ["PRODUCER_FENCED"]
        for version in (1, 2, 5):
            code = (await end(caller, zombie, version)).error_code
            name = "INVALID_PRODUCER_EPOCH" if version < 2 else "PRODUCER_FENCED"
            assert ErrorCode(code).name == name
        assert await produce(caller, zombie, 0, version=12) == "INVALID_PRODUCER_EPOCH"

    run(scenario, FEW)


def test_a_transaction_that_its_coordinator_cannot_note_does_not_grow():
    """Its record would be larger than a message may be; what it has already can be ended."""

    async def scenario(caller):
        topics = [f"{number}{'x' * 200}" for number in range(8)]
        who = await begin(caller, topics=topics)
        codes = [(await add(caller, who, (topic, 0)))[0] for topic in topics]
        assert codes == ["NONE"] * 4 + ["UNKNOWN_SERVER_ERROR"] * 4
        assert (await end(caller, who, 3)).error_code == 0
        assert (await complete(caller)).transaction_state == "CompleteCommit"

    run(scenario, {**FEW, "message.max.bytes": "1000"})


def test_only_brokers_add_for_others():
    """AddPartitionsToTxn 4 and 5."""

    async def scenario(caller):
        who = await begin(caller)
        transaction = AddPartitionsToTxnTransaction(
            transactional_id="x", producer_id=who[0], producer_epoch=who[1], topics=[]
        )
        answer = await caller.call(AddPartitionsToTxnRequest(transactions=[transaction]), 5)
        assert answer.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED

    run(scenario, FEW)


@pytest.mark.parametrize("version", [3, 5])
def test_offsets_count_when_the_transaction_commits(version):
    """Added by AddOffsetsToTxn, or with TxnOffsetCommit 5; a stable answer has to wait."""

    async def scenario(caller):
        who = await begin(caller)
        if version < 5:
            request = AddOffsetsToTxnRequest(
                transactional_id="x", producer_id=who[0], producer_epoch=who[1], group_id="g"
            )
            assert (await caller.call(request, 3)).error_code == 0
        else:
            await caller.call(FindCoordinatorRequest(key="g"), 3)
        partition = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=42)
        request = TxnOffsetCommitRequest(
            transactional_id="x",
            group_id="g",
            producer_id=who[0],
            producer_epoch=who[1],
            topics=[TxnOffsetCommitRequestTopic(name="t", partitions=[partition])],
        )
        answer = await caller.call(request, version)
        assert answer.topics[0].partitions[0].error_code == 0
        assert await committed(caller) == (-1, "UNSTABLE_OFFSET_COMMIT")
        assert (await end(caller, who, 5 if version == 5 else 3)).error_code == 0
        await complete(caller)
        assert await committed(caller) == (42, "NONE")

    run(scenario, FEW)


@pytest.mark.parametrize(
    ("version", "code"), [(3, "INVALID_TXN_STATE"), (4, "TRANSACTION_ABORTABLE")]
)
def test_offsets_of_a_group_that_was_not_added_are_refused(version, code):
    """KIP-890: as the version of the producer knows it, as in Kafka."""

    async def scenario(caller):
        who = await begin(caller)
        assert await add(caller, who, ("t", 0)) == ["NONE"]
        await caller.call(FindCoordinatorRequest(key="g"), 3)
        partition = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=42)
        request = TxnOffsetCommitRequest(
            transactional_id="x",
            group_id="g",
            producer_id=who[0],
            producer_epoch=who[1],
            topics=[TxnOffsetCommitRequestTopic(name="t", partitions=[partition])],
        )
        answer = await caller.call(request, version)
        assert ErrorCode(answer.topics[0].partitions[0].error_code).name == code

    run(scenario, FEW)


async def committed(caller):
    topic = OffsetFetchRequestTopic(name="t", partition_indexes=[0])
    request = OffsetFetchRequest(
        groups=[OffsetFetchRequestGroup(group_id="g", topics=[topic])], require_stable=True
    )
    (group,) = (await caller.call(request, 8)).groups
    told = group.topics[0].partitions[0]
    return told.committed_offset, ErrorCode(told.error_code).name


def test_a_deleted_topic_does_not_hold_up_the_others():
    """S26: its transaction ends in all partitions that there still are."""

    async def scenario(caller):
        who = await begin(caller, topics=("t", "gone"))
        for topic in ("t", "gone"):
            assert await produce(caller, who, 0, version=12, topic=topic) == "NONE"
        request = DeleteTopicsRequest(topics=[DeleteTopicState(name="gone")], timeout_ms=10_000)
        assert (await caller.call(request, 6)).responses[0].error_code == 0
        assert (await end(caller, who, 5)).error_code == 0
        assert (await complete(caller)).transaction_state == "CompleteCommit"
        assert stable(caller) == (2, 2)

    run(scenario, FEW)


def test_a_topic_that_the_coordinator_has_not_heard_of_is_no_deleted_one():
    """Its leader may know it earlier: the marker waits for the controller's news."""

    async def scenario(caller):
        who = await begin(caller)
        assert await produce(caller, who, 0, version=12) == "NONE"
        known = caller.broker.image
        topics = {name: topic for name, topic in known.topics.items() if name != "t"}
        caller.broker.parts.cluster.view.replace(replace(known, topics=topics))
        assert (await end(caller, who, 5)).error_code == 0
        for _ in range(20):
            caller.broker.runtime.clock.advance(100)
            await asyncio.sleep(0.01)
            assert (await state(caller)).transaction_state == "PrepareCommit"
        caller.broker.parts.cluster.view.replace(known)
        while (told := await state(caller)).transaction_state == "PrepareCommit":
            caller.broker.runtime.clock.advance(100)
            await asyncio.sleep(0.01)
        assert told.transaction_state == "CompleteCommit"
        assert stable(caller) == (2, 2)

    run(scenario, FEW)


def test_transactions_survive_the_broker():
    """Open ones stay open, decided ones are completed; after a crash, too."""
    who = {}

    async def before(caller):
        who["x"] = await begin(caller, "x", topics=("t",))
        assert await produce(caller, who["x"], 0, version=12) == "NONE"

    async def after(caller):
        assert (await state(caller)).transaction_state == "Ongoing"
        assert stable(caller) == (0, 1)
        assert await produce(caller, who["x"], 1, version=12) == "NONE"
        assert (await end(caller, who["x"], 5)).error_code == 0
        assert (await complete(caller)).transaction_state == "CompleteCommit"
        assert stable(caller) == (3, 3)

    store, filesystem = MemoryStore(), MemoryFileSystem()
    run(before, FEW, store=store, filesystem=filesystem, clean=False)
    run(after, FEW, store=store, filesystem=filesystem)


def test_what_takes_too_long_is_aborted_and_its_producer_fenced():
    """At the next look after its timeout; readers wait no more."""

    async def scenario(caller):
        who = await begin(caller, timeout_ms=1_000)
        assert await produce(caller, who, 0, version=12) == "NONE"
        caller.broker.runtime.clock.advance(1_001)
        assert (await complete(caller)).transaction_state == "CompleteAbort"
        assert stable(caller) == (2, 2)
        assert (await end(caller, who, 5)).error_code == ErrorCode.PRODUCER_FENCED

    interval = "transaction.abort.timed.out.transaction.cleanup.interval.ms"
    run(scenario, {**FEW, interval: "10"})


def test_unknown_ids_and_states_are_told():
    """DescribeTransactions and ListTransactions; a pattern that is none."""

    async def scenario(caller):
        await begin(caller)
        request = DescribeTransactionsRequest(transactional_ids=["x", "y"])
        told = (await caller.call(request, 0)).transaction_states
        assert [ErrorCode(each.error_code).name for each in told] == [
            "NONE",
            "TRANSACTIONAL_ID_NOT_FOUND",
        ]
        request = ListTransactionsRequest(state_filters=["Sleeping"])
        answer = await caller.call(request, 2)
        assert (answer.unknown_state_filters, answer.transaction_states) == (["Sleeping"], [])
        request = ListTransactionsRequest(transactional_id_pattern="x|z")
        assert len((await caller.call(request, 2)).transaction_states) == 1
        request = ListTransactionsRequest(transactional_id_pattern="(")
        code = (await caller.call(request, 2)).error_code
        assert code == ErrorCode.INVALID_REGULAR_EXPRESSION

    run(scenario, FEW)


def test_a_marker_ends_what_hangs():
    """WriteTxnMarkers of a tool (KIP-664); for each partition a code."""

    async def scenario(caller):
        who = await begin(caller)
        assert await produce(caller, who, 0, version=12) == "NONE"
        marker = WritableTxnMarker(
            producer_id=who[0],
            producer_epoch=who[1],
            transaction_result=False,
            topics=[
                WritableTxnMarkerTopic(name="t", partition_indexes=[0]),
                WritableTxnMarkerTopic(name="nowhere", partition_indexes=[0]),
            ],
            coordinator_epoch=0,
        )
        answer = await caller.call(WriteTxnMarkersRequest(markers=[marker]), 1)
        codes = {
            TopicPartition(topic.name, each.partition_index): ErrorCode(each.error_code).name
            for topic in answer.markers[0].topics
            for each in topic.partitions
        }
        assert codes == {
            TopicPartition("t", 0): "NONE",
            TopicPartition("nowhere", 0): "UNKNOWN_TOPIC_OR_PARTITION",
        }
        assert stable(caller) == (2, 2)

    run(scenario, FEW)


def test_an_empty_transactional_id_is_an_invalid_request():
    """In each request that carries one."""

    async def scenario(caller):
        who = await begin(caller)
        assert await add(caller, who, ("t", 0), name="") == ["INVALID_REQUEST"]
        assert (await end(caller, who, 5, name="")).error_code == ErrorCode.INVALID_REQUEST
        request = AddOffsetsToTxnRequest(
            transactional_id="", producer_id=who[0], producer_epoch=who[1], group_id="g"
        )
        assert (await caller.call(request, 3)).error_code == ErrorCode.INVALID_REQUEST

    run(scenario, FEW)
