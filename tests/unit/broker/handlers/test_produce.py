"""Produce: what is appended, when it is acknowledged, and what is refused."""

import logging
from typing import Any
from uuid import UUID

import pytest

from ottla.base.errors import ErrorCode
from ottla.base.ids import BrokerId
from ottla.broker.handlers.produce import Produce
from ottla.broker.handlers.transactions import AddPartitionsToTxn, InitProducerId
from ottla.broker.produce.parts import Turns
from ottla.broker.requests.handler import NO_ANSWER
from ottla.metadata.image import PartitionImage
from ottla.network.service import CloseConnection
from ottla.record.builder import BatchBuilder
from ottla.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from ottla.wire.messages.transactions import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    InitProducerIdRequest,
)

from .coordinators_world import ONE, TOPIC_IDS, TWO, Request, World, code, play

TRANSACTIONS = "__transaction_state"


def handler(world: World) -> Produce:
    return Produce(
        world.view,
        world.runtime,
        world.partitions,
        world.settings,
        world.new_leaders,
        world.verifications,
        Turns(world.runtime.clock),
    )


def batch(*values: bytes, **producer: Any) -> memoryview:
    builder = BatchBuilder(**producer)
    for value in values:
        builder.append(1_000, None, value)
    return memoryview(builder.build())


def request(topics: dict[str, memoryview | None], acks: int = 1, **fields: Any) -> ProduceRequest:
    """A batch for partition 0 of each topic."""
    return ProduceRequest(
        acks=acks,
        timeout_ms=30_000,
        topic_data=[
            TopicProduceData(
                name=name,
                topic_id=TOPIC_IDS.get(name, UUID(int=99)),
                partition_data=[PartitionProduceData(index=0, records=records)],
            )
            for name, records in topics.items()
        ],
        **fields,
    )


def answers(response: Any) -> list[tuple[str, int]]:
    return [
        (code(part.error_code), part.base_offset)
        for topic in response.responses
        for part in topic.partition_responses
    ]


async def produce(
    world: World, topics: dict[str, memoryview | None], version: int = 12, **fields: Any
) -> Any:
    return await world.call(handler(world), request(topics, **fields), version)


def test_batches_are_appended_and_answered_with_their_offsets() -> None:
    """By name, and from version 13 on by id."""

    async def scenario(world: World) -> None:
        response = await produce(world, {"t": batch(b"a", b"b"), "u": batch(b"c")})
        assert answers(response) == [("NONE", 0), ("NONE", 0)]
        response = await produce(world, {"t": batch(b"d")}, version=13)
        assert answers(response) == [("NONE", 2)]
        assert [topic.topic_id for topic in response.responses] == [TOPIC_IDS["t"]]
        assert world.partitions.get("t", 0).log_end_offset == 3

    play(scenario, "t", "u")


async def order(world: World, *isr: BrokerId, version: int = 0) -> None:
    """Lead topic t, which has a replica on broker 2, with these in sync. Broker 2 never fetches."""
    topic = world.view.image.topics["t"]
    state = PartitionImage(ONE, 1, (ONE, TWO), isr, version=version, leader_broker_epoch=1)
    assert await world.partitions.order([(topic, 0, state)]) == {}


def test_acks_all_waits_for_every_replica_in_sync_and_acks_1_does_not() -> None:
    """In time, or with REQUEST_TIMED_OUT; the batch stays appended."""

    async def scenario(world: World) -> None:
        await order(world, ONE, TWO)
        now = world.begin(handler(world), request({"t": batch(b"a")}, acks=1), 12)
        assert answers(now.answered.result()) == [("NONE", 0)]
        waiting = world.begin(handler(world), request({"t": batch(b"b")}, acks=-1), 12)
        late = request({"t": batch(b"c")}, acks=-1)
        late.timeout_ms = 1
        timed_out = world.begin(handler(world), late, 12)
        world.clock.advance(1)
        assert answers(await timed_out.answered) == [("REQUEST_TIMED_OUT", 2)]
        assert not waiting.answered.done()
        await order(world, ONE, version=1)
        assert answers(await waiting.answered) == [("NONE", 1)]

    play(scenario, "t")


def test_a_batch_that_is_refused_does_not_hinder_the_others() -> None:
    """No such topic, no batch at all, a corrupt one, one of a transaction that is not named."""

    async def scenario(world: World) -> None:
        corrupt = batch(b"x")
        corrupt[-1] ^= 1
        for version in (12, 13):
            unknown = "UNKNOWN_TOPIC_ID" if version == 13 else "UNKNOWN_TOPIC_OR_PARTITION"
            for topics, expected in (
                ({"none": batch(b"x"), "t": batch(b"a")}, [unknown, "NONE"]),
                ({"t": None, "u": batch(b"a")}, ["INVALID_RECORD", "NONE"]),
                ({"t": corrupt, "u": batch(b"a")}, ["CORRUPT_MESSAGE", "NONE"]),
            ):
                response = await produce(world, topics, version)
                assert [name for name, _ in answers(response)] == expected
        own = batch(b"x", producer_id=5, producer_epoch=0, base_sequence=0, transactional=True)
        assert answers(await produce(world, {"t": own})) == [
            ("TRANSACTIONAL_ID_AUTHORIZATION_FAILED", -1)
        ]
        assert world.partitions.get("t", 0).log_end_offset == 2

    play(scenario, "t", "u")


def test_internal_topics_take_no_batches_of_clients() -> None:
    """INVALID_TOPIC_EXCEPTION."""

    async def scenario(world: World) -> None:
        response = await produce(world, {TRANSACTIONS: batch(b"x")})
        assert answers(response) == [("INVALID_TOPIC_EXCEPTION", -1)]

    play(scenario, TRANSACTIONS)


def test_a_producer_at_the_wrong_broker_learns_which_one_leads() -> None:
    """With its address, from version 10 on."""

    async def scenario(world: World) -> None:
        await world.create("elsewhere", leader=TWO)
        topic = world.view.image.topics["elsewhere"]
        assert await world.partitions.order([(topic, 0, topic.partitions[0])]) == {}
        response = await produce(world, {"elsewhere": batch(b"x")})
        assert answers(response) == [("NOT_LEADER_OR_FOLLOWER", -1)]
        (part,) = response.responses[0].partition_responses
        assert (part.current_leader.leader_id, part.current_leader.leader_epoch) == (2, 0)
        assert [(n.node_id, n.host, n.port) for n in response.node_endpoints] == [
            (2, "host2", 9092)
        ]
        assert (await produce(world, {"elsewhere": batch(b"x")}, version=9)).node_endpoints == []

    play(scenario)


def test_a_batch_refused_by_a_setting_is_logged_with_its_remedy(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The producer gets the error, the operator the line."""

    async def scenario(world: World) -> None:
        response = await produce(world, {"t": batch(b"x" * 2000)})
        assert answers(response) == [("MESSAGE_TOO_LARGE", -1)]
        (line,) = [each.getMessage() for each in caplog.records]
        assert line.startswith("refused a batch of 2070 bytes for t-0 from the producer 'tester'")
        assert "max.message.bytes" in line

    with caplog.at_level(logging.WARNING):
        play(scenario, "t", settings={"message.max.bytes": "1000"})


def test_without_acknowledgement_there_is_no_answer_and_an_error_closes_the_connection() -> None:
    """Only that makes such a producer look for the leader again."""

    async def scenario(world: World) -> None:
        def send(topics: dict[str, memoryview | None]) -> Any:
            context: Any = Request(12)
            return handler(world).handle(context, request(topics, acks=0))

        assert send({"t": batch(b"a")}) is NO_ANSWER
        assert world.partitions.get("t", 0).log_end_offset == 1
        with pytest.raises(CloseConnection):
            send({"none": batch(b"a")})
        with pytest.raises(CloseConnection):
            Produce.on_error(request({"t": None}, acks=0), ErrorCode.UNKNOWN_SERVER_ERROR, "", 12)

    play(scenario, "t")


def test_other_acks_are_refused_on_every_partition() -> None:
    """0, 1 and -1 are all there is."""

    async def scenario(world: World) -> None:
        response = await produce(world, {"t": batch(b"a"), "u": batch(b"b")}, acks=2)
        assert answers(response) == [("INVALID_REQUIRED_ACKS", -1)] * 2
        assert world.partitions.get("t", 0).log_end_offset == 0

    play(scenario, "t", "u")


async def begin_transaction(world: World) -> tuple[int, int]:
    initialize = InitProducerId(world.runtime, world.transactions, world.producer_ids)
    wanted = InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=60_000)
    answer = await world.call(initialize, wanted, 5)
    assert answer.error_code == 0
    return answer.producer_id, answer.producer_epoch


def test_batches_of_a_transaction_wait_until_it_is_known_to_include_their_partition() -> None:
    """From version 12 on the leader adds the partition; before, the producer must have done it."""

    async def scenario(world: World) -> None:
        producer_id, epoch = await begin_transaction(world)

        def of(sequence: int, epoch: int = epoch) -> memoryview:
            return batch(
                b"a",
                producer_id=producer_id,
                producer_epoch=epoch,
                base_sequence=sequence,
                transactional=True,
            )

        response = await produce(world, {"t": of(0)}, 11, transactional_id="x")
        assert answers(response) == [("TRANSACTION_ABORTABLE", -1)]
        response = await produce(world, {"t": of(0)}, 12, transactional_id="x")
        assert answers(response) == [("NONE", 0)]
        response = await produce(world, {"u": of(0, epoch + 1)}, 12, transactional_id="x")
        assert [name for name, _ in answers(response)] == ["INVALID_PRODUCER_EPOCH"]
        added = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id="x",
            v3_and_below_producer_id=producer_id,
            v3_and_below_producer_epoch=epoch,
            v3_and_below_topics=[AddPartitionsToTxnTopic(name="u", partitions=[0])],
        )
        await world.call(AddPartitionsToTxn(world.view, world.transactions), added, 3)
        response = await produce(world, {"u": of(0)}, 11, transactional_id="x")
        assert answers(response) == [("NONE", 0)]

    play(scenario, TRANSACTIONS, "t", "u")
