"""The handlers of transactions, without a socket."""

import asyncio
from typing import Any

import pytest

from ottla.base.errors import ErrorCode
from ottla.base.ids import TopicPartition
from ottla.broker.cluster.admission import PeerIdentity
from ottla.broker.handlers.between_brokers import WriteTxnMarkers
from ottla.broker.handlers.group_offsets import TxnOffsetCommit
from ottla.broker.handlers.transaction_listings import (
    DescribeProducers,
    DescribeTransactions,
    ListTransactions,
)
from ottla.broker.handlers.transactions import (
    AddOffsetsToTxn,
    AddPartitionsToTxn,
    EndTxn,
    InitProducerId,
)
from ottla.record.builder import BatchBuilder
from ottla.wire.messages.group_offsets import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from ottla.wire.messages.transaction_listings import (
    DescribeProducersRequest,
    DescribeTransactionsRequest,
    ListTransactionsRequest,
    TopicRequest,
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

from .coordinators_world import TWO, Connection, World, code, play

OFFSETS, TRANSACTIONS = "__consumer_offsets", "__transaction_state"
Producer = tuple[int, int]


async def initialize(world: World, name: str | None = "x", **fields: Any) -> Any:
    fields.setdefault("transaction_timeout_ms", 60_000)
    request = InitProducerIdRequest(transactional_id=name, **fields)
    handler = InitProducerId(world.runtime, world.transactions, world.producer_ids)
    return await world.call(handler, request, 5)


async def producer(world: World, name: str = "x") -> Producer:
    answer = await initialize(world, name)
    assert answer.error_code == 0
    return answer.producer_id, answer.producer_epoch


async def add(
    world: World, who: Producer, *topics: str, version: int = 3, name: str = "x"
) -> list[str]:
    request = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=name,
        v3_and_below_producer_id=who[0],
        v3_and_below_producer_epoch=who[1],
        v3_and_below_topics=[AddPartitionsToTxnTopic(name=each, partitions=[0]) for each in topics],
    )
    handler = AddPartitionsToTxn(world.view, world.transactions)
    answer = await world.call(handler, request, version)
    return [
        code(part.partition_error_code)
        for topic in answer.results_by_topic_v3_and_below
        for part in topic.results_by_partition
    ]


async def end(
    world: World, who: Producer, *, committed: bool = True, version: int = 5, name: str = "x"
) -> Any:
    request = EndTxnRequest(
        transactional_id=name, producer_id=who[0], producer_epoch=who[1], committed=committed
    )
    return await world.call(EndTxn(world.transactions), request, version)


async def describe(world: World, *names: str) -> Any:
    request = DescribeTransactionsRequest(transactional_ids=list(names))
    handler = DescribeTransactions(world.transactions)
    return (await world.call(handler, request, 0)).transaction_states


async def completed(world: World) -> str:
    """The state of the transaction once its markers are written."""
    while True:
        (found,) = await describe(world, "x")
        if not found.transaction_state.startswith("Prepare"):
            return str(found.transaction_state)
        await asyncio.sleep(0)


def test_producer_ids_are_given_out_once() -> None:
    """Without a transactional id in epoch 0; id and epoch must be given together."""

    async def scenario(world: World) -> None:
        for number in range(2):
            answer = await initialize(world, None)
            assert (answer.error_code, answer.producer_id, answer.producer_epoch) == (0, number, 0)
        answer = await initialize(world, None, producer_id=7)
        assert (code(answer.error_code), answer.producer_id) == ("INVALID_REQUEST", -1)

    play(scenario)


def test_a_transactional_id_keeps_its_producer_id_in_the_next_epoch() -> None:
    """An id that is empty, or coordinated elsewhere, is refused."""

    async def scenario(world: World) -> None:
        assert code((await initialize(world)).error_code) == "NOT_COORDINATOR"
        await world.create(TRANSACTIONS)
        assert await producer(world) == (0, 0)
        assert await producer(world) == (0, 1)
        assert await producer(world, "y") == (1, 0)
        assert code((await initialize(world, "")).error_code) == "INVALID_REQUEST"

    play(scenario)


def test_partitions_are_added_for_a_client_all_or_none() -> None:
    """A missing or an internal topic fails the request for all."""

    async def scenario(world: World) -> None:
        who = await producer(world)
        assert await add(world, who, "t", "missing", OFFSETS) == [
            "OPERATION_NOT_ATTEMPTED",
            "UNKNOWN_TOPIC_OR_PARTITION",
            "TOPIC_AUTHORIZATION_FAILED",
        ]
        assert await add(world, who, "t", "u") == ["NONE", "NONE"]
        assert await add(world, who, "t", name="") == ["INVALID_REQUEST"]
        zombie = (who[0], who[1] - 1)
        assert await add(world, zombie, "t", version=1) == ["INVALID_PRODUCER_EPOCH"]
        assert await add(world, zombie, "t", version=2) == ["PRODUCER_FENCED"]

    play(scenario, TRANSACTIONS, OFFSETS, "t", "u")


@pytest.mark.parametrize(
    ("verify_only", "missing"), [(True, "TRANSACTION_ABORTABLE"), (False, "NONE")]
)
def test_a_broker_verifies_or_adds_partitions(verify_only: bool, missing: str) -> None:
    """KIP-890: a partition that was not added is refused, or added; clients are refused."""

    async def scenario(world: World) -> None:
        who = await producer(world)
        await add(world, who, "t")
        topics = [AddPartitionsToTxnTopic(name=name, partitions=[0]) for name in ("t", "u", "none")]
        transaction = AddPartitionsToTxnTransaction(
            transactional_id="x",
            producer_id=who[0],
            producer_epoch=who[1],
            verify_only=verify_only,
            topics=topics,
        )
        request = AddPartitionsToTxnRequest(transactions=[transaction])
        handler = AddPartitionsToTxn(world.view, world.transactions)
        refused = await world.call(handler, request, 5)
        assert code(refused.error_code) == "CLUSTER_AUTHORIZATION_FAILED"
        answer = await world.call(handler, request, 5, proven_connection())
        (result,) = answer.results_by_transaction
        assert [
            (topic.name, code(part.partition_error_code))
            for topic in result.topic_results
            for part in topic.results_by_partition
        ] == [("t", "NONE"), ("u", missing), ("none", "UNKNOWN_TOPIC_OR_PARTITION")]

    play(scenario, TRANSACTIONS, "t", "u")


class _Proven:
    """The receiver of a handshake that is done."""

    class proven:  # noqa: N801  # Read like an instance.
        broker_id = 2


def proven_connection() -> Connection:
    """A connection whose other end proved to be broker 2."""
    connection = Connection()
    identity = PeerIdentity()
    identity.receiver = _Proven()  # type: ignore[assignment]
    connection.identity = identity
    return connection


def test_the_end_of_a_transaction_is_written_and_raises_the_epoch() -> None:
    """EndTxn 5 (KIP-890); the older version keeps the epoch and does not tell it."""

    async def scenario(world: World) -> None:
        who = await producer(world)
        await add(world, who, "t")
        answer = await end(world, who)
        assert (answer.error_code, answer.producer_id, answer.producer_epoch) == (0, 0, 1)
        assert await completed(world) == "CompleteCommit"
        assert world.partitions.get("t", 0).high_watermark == 1
        who = (0, 1)
        await add(world, who, "t")
        answer = await end(world, who, committed=False, version=4)
        assert (answer.error_code, answer.producer_epoch) == (0, -1)
        assert await completed(world) == "CompleteAbort"

    play(scenario, TRANSACTIONS, "t")


def test_a_transaction_that_cannot_be_ended_tells_why() -> None:
    """Nothing to end, a zombie by its version, an empty id."""

    async def scenario(world: World) -> None:
        who = await producer(world)
        await producer(world)
        assert code((await end(world, who)).error_code) == "PRODUCER_FENCED"
        assert code((await end(world, who, version=1)).error_code) == "INVALID_PRODUCER_EPOCH"
        assert code((await end(world, (0, 1), version=4)).error_code) == "INVALID_TXN_STATE"
        assert code((await end(world, who, name="")).error_code) == "INVALID_REQUEST"

    play(scenario, TRANSACTIONS)


def test_offsets_are_part_of_a_transaction_and_count_with_its_commit() -> None:
    """AddOffsetsToTxn creates `__consumer_offsets`; TxnOffsetCommit needs it to have been sent."""

    async def scenario(world: World) -> None:
        who = await producer(world)
        handler = AddOffsetsToTxn(world.runtime, world.groups, world.transactions, world.topics)
        request = AddOffsetsToTxnRequest(
            transactional_id="x", producer_id=who[0], producer_epoch=who[1], group_id="g"
        )
        assert (await world.call(handler, request, 4)).error_code == 0
        assert world.view.image.topic(OFFSETS) is not None
        request.transactional_id = ""
        assert code((await world.call(handler, request, 4)).error_code) == "INVALID_REQUEST"
        assert await commit_offset(world, who, 4) == "NONE"
        assert committed(world) == {}
        await end(world, who)
        assert await completed(world) == "CompleteCommit"
        assert committed(world) == {TopicPartition("t", 0): 42}

    play(scenario, TRANSACTIONS, "t")


async def commit_offset(world: World, who: Producer, version: int, name: str = "x") -> str:
    partition = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=42)
    request = TxnOffsetCommitRequest(
        transactional_id=name,
        group_id="g",
        producer_id=who[0],
        producer_epoch=who[1],
        topics=[TxnOffsetCommitRequestTopic(name="t", partitions=[partition])],
    )
    handler = TxnOffsetCommit(world.view, world.groups, world.verifications)
    answer = await world.call(handler, request, version)
    return code(answer.topics[0].partitions[0].error_code)


def committed(world: World) -> dict[TopicPartition, int]:
    """The offsets of group g that count."""
    (shard,) = world.groups.shards()
    group = shard.loaded().registry.groups.get("g")
    return {} if group is None else {key: each.offset for key, each in group.offsets.items()}


def test_offsets_that_were_not_added_are_refused_or_added_by_version() -> None:
    """KIP-890; an empty transactional id is invalid."""

    async def scenario(world: World) -> None:
        who = await producer(world)
        await add(world, who, "t")
        assert await commit_offset(world, who, 3) == "INVALID_TXN_STATE"
        assert await commit_offset(world, who, 4) == "TRANSACTION_ABORTABLE"
        assert await commit_offset(world, who, 5) == "NONE"
        assert await commit_offset(world, who, 5, name="") == "INVALID_REQUEST"
        zombie = (who[0], who[1] - 1)
        assert await commit_offset(world, zombie, 5) == "INVALID_PRODUCER_EPOCH"

    play(scenario, TRANSACTIONS, OFFSETS, "t")


async def write_markers(world: World, *markers: tuple[Producer, list[str]]) -> list[list[str]]:
    request = WriteTxnMarkersRequest(
        markers=[
            WritableTxnMarker(
                producer_id=who[0],
                producer_epoch=who[1],
                transaction_result=True,
                topics=[WritableTxnMarkerTopic(name=name, partition_indexes=[0]) for name in names],
                coordinator_epoch=0,
            )
            for who, names in markers
        ]
    )
    answer = await world.call(WriteTxnMarkers(world.marker_writer), request, 1)
    return [
        [code(part.error_code) for topic in marker.topics for part in topic.partitions]
        for marker in answer.markers
    ]


def test_markers_are_written_to_the_partitions_that_are_led_here() -> None:
    """Each partition is answered; a marker in an earlier epoch of its producer is refused."""

    async def scenario(world: World) -> None:
        await world.create("elsewhere", leader=TWO)
        assert await write_markers(world, ((7, 3), ["t", "missing", "elsewhere"])) == [
            ["NONE", "UNKNOWN_TOPIC_OR_PARTITION", "NOT_LEADER_OR_FOLLOWER"]
        ]
        assert await write_markers(world, ((7, 2), ["t"]), ((8, 0), [])) == [
            ["INVALID_PRODUCER_EPOCH"],
            [],
        ]
        assert world.partitions.get("t", 0).log_end_offset == 1

    play(scenario, "t")


def test_transactions_are_described_and_listed() -> None:
    """One that does not exist is TRANSACTIONAL_ID_NOT_FOUND."""

    async def scenario(world: World) -> None:
        who = await producer(world)
        await add(world, who, "t")
        known, unknown = await describe(world, "x", "nowhere")
        assert (known.transaction_state, known.producer_id, known.producer_epoch) == (
            "Ongoing",
            0,
            0,
        )
        assert (known.transaction_timeout_ms, known.transaction_start_time_ms) == (
            60_000,
            world.clock.now_ms(),
        )
        assert [(each.topic, each.partitions) for each in known.topics] == [("t", [0])]
        assert (unknown.transactional_id, code(unknown.error_code)) == (
            "nowhere",
            "TRANSACTIONAL_ID_NOT_FOUND",
        )
        handler = ListTransactions(world.runtime, world.transactions)
        request = ListTransactionsRequest(state_filters=["Ongoing", "Sleeping"])
        answer = await world.call(handler, request, 2)
        assert answer.unknown_state_filters == ["Sleeping"]
        assert [
            (each.transactional_id, each.producer_id, each.transaction_state)
            for each in answer.transaction_states
        ] == [("x", 0, "Ongoing")]
        request = ListTransactionsRequest(transactional_id_pattern="(")
        answer = await world.call(handler, request, 2)
        assert code(answer.error_code) == "INVALID_REGULAR_EXPRESSION"

    play(scenario, TRANSACTIONS, "t")


def test_transactions_are_not_described_while_they_load_or_elsewhere() -> None:
    """COORDINATOR_LOAD_IN_PROGRESS, NOT_COORDINATOR."""

    async def scenario(world: World) -> None:
        (found,) = await describe(world, "x")
        assert code(found.error_code) == "NOT_COORDINATOR"
        await world.create(TRANSACTIONS)
        (shard,) = world.transactions.shards()
        shard.coordinator = None
        (found,) = await describe(world, "x")
        assert code(found.error_code) == "COORDINATOR_LOAD_IN_PROGRESS"
        handler = ListTransactions(world.runtime, world.transactions)
        answer = await world.call(handler, ListTransactionsRequest(), 2)
        assert ErrorCode(answer.error_code) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS

    play(scenario)


def test_the_producers_of_a_partition_are_described() -> None:
    """With the start of an open transaction; a partition that does not exist is told beside it."""

    async def scenario(world: World) -> None:
        world.write("t", b"before")
        builder = BatchBuilder(producer_id=7, producer_epoch=2, base_sequence=0)
        world.append("t", builder, b"one", b"two")
        request = DescribeProducersRequest(
            topics=[TopicRequest(name="t", partition_indexes=[0, 9])]
        )
        (topic,) = (await world.call(DescribeProducers(world.partitions), request, 0)).topics
        known, unknown = topic.partitions
        (active,) = known.active_producers
        assert (active.producer_id, active.producer_epoch, active.last_sequence) == (7, 2, 1)
        assert (active.last_timestamp, active.current_txn_start_offset) == (
            world.clock.now_ms(),
            -1,
        )
        assert (unknown.partition_index, code(unknown.error_code)) == (
            9,
            "UNKNOWN_TOPIC_OR_PARTITION",
        )

    play(scenario, "t")
