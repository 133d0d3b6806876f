"""What becomes of batches when brokers refuse, vanish, or lose the thread."""

import asyncio
import contextlib
import re
from collections import deque
from collections.abc import Callable

import pytest
from rig.broker import ottla

from ottla.base.errors import ErrorCode
from ottla.client import (
    ClientError,
    ConnectionFailed,
    Consumer,
    Delivery,
    DeliveryFailed,
    Producer,
    ProducerOptions,
    RequestTimedOut,
    TopicPartition,
)
from ottla.wire.api import ApiKey
from tests.integration.client.scripted import APPEND_AND_DROP, DROP, ScriptedBroker

# How long a producer may try, in turn, until the broker has had its say: a busy machine may take
# longer to come to it.
LIMITS_MS = (200, 2_000, 60_000)

# One record per batch, so that each value shows where its batch went.
SINGLE = {"batch_size": 20, "linger_ms": 0, "retry_backoff_ms": 1, "retry_backoff_max_ms": 1}


def with_time(attempt: Callable[[int], None]) -> None:
    """Call `attempt` with longer and longer limits, the last of which must do."""
    for limit_ms in LIMITS_MS[:-1]:
        with contextlib.suppress(AssertionError, ClientError):
            return attempt(limit_ms)
    return attempt(LIMITS_MS[-1])


async def send(broker: ScriptedBroker, count: int, **options: object) -> list[Delivery]:
    """Send values 0, 1, … a batch each, and wait for all."""
    told: list[Delivery] = []
    chosen = ProducerOptions(**{**SINGLE, **options})
    async with Producer(broker.bootstrap, **chosen, on_delivery=told.append) as producer:
        for number in range(count):
            await producer.send("t", b"%010d" % number)
    return told


def expected(count: int) -> list[bytes]:
    return [b"%010d" % number for number in range(count)]


def test_order_holds_with_five_in_flight_when_the_first_is_refused() -> None:
    """The refused batch and those behind it go again, in their first order (P8, KIP-98)."""

    async def run() -> ScriptedBroker:
        script = deque([ErrorCode.NONE, ErrorCode.NOT_ENOUGH_REPLICAS])
        async with ScriptedBroker(script) as broker:
            assert all(d.error is None for d in await send(broker, 8))
            return broker

    broker = asyncio.run(run())
    assert broker.log == expected(8)
    first, second = broker.attempts[1:3]
    assert (first.outcome, second.outcome) == (
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
    )
    assert {attempt.header.producer_epoch for attempt in broker.attempts} == {0}


def test_order_holds_when_a_partitions_first_batch_is_refused() -> None:
    """A broker that does not know the producer would take the second one before it (KIP-360)."""

    async def run() -> ScriptedBroker:
        async with ScriptedBroker(deque([ErrorCode.NOT_LEADER_OR_FOLLOWER])) as broker:
            assert all(d.error is None for d in await send(broker, 8))
            return broker

    assert asyncio.run(run()).log == expected(8)


@pytest.mark.parametrize("fate", [DROP, APPEND_AND_DROP])
def test_a_lost_answer_neither_loses_nor_doubles(fate) -> None:
    """The same sequence goes again; a broker that has it already says so (P9)."""

    async def run() -> ScriptedBroker:
        script = deque([ErrorCode.NONE, fate])
        async with ScriptedBroker(script) as broker:
            assert all(d.error is None for d in await send(broker, 6))
            return broker

    broker = asyncio.run(run())
    assert broker.log == expected(6)
    again = [attempt for attempt in broker.attempts if attempt.values == [b"%010d" % 1]]
    assert {attempt.header.base_sequence for attempt in again} == {1}
    assert len(again) >= 2


def test_a_broker_that_forgot_the_producer_is_told_a_new_epoch() -> None:
    """Refused with nothing undecided before it: numbers start again from 0 (KIP-360)."""

    async def run() -> ScriptedBroker:
        script = deque([ErrorCode.NONE, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER])
        async with ScriptedBroker(script) as broker:
            assert all(
                d.error is None
                for d in await send(broker, 6, max_in_flight_requests_per_connection=1)
            )
            return broker

    broker = asyncio.run(run())
    assert broker.log == expected(6)
    numbers = [(a.header.producer_epoch, a.header.base_sequence) for a in broker.attempts]
    assert numbers == [(0, 0), (0, 1), (1, 0), (1, 1), (1, 2), (1, 3), (1, 4)]


def test_a_batch_given_up_does_not_stop_those_behind_it() -> None:
    """Refused for good: it fails alone; the others arrive in order under a new epoch (KIP-360)."""

    async def run() -> tuple[ScriptedBroker, list[Delivery]]:
        async with ScriptedBroker(deque([ErrorCode.INVALID_RECORD])) as broker:
            return broker, await send(broker, 5)

    broker, told = asyncio.run(run())
    assert broker.log == expected(5)[1:]
    failed = [delivery.error for delivery in told if delivery.error is not None]
    assert [error.code for error in failed] == [ErrorCode.INVALID_RECORD]


def test_without_idempotence_batches_carry_no_numbers() -> None:
    """acks 1: nothing to recognise a batch by, and retries all the same (P8)."""

    async def run() -> ScriptedBroker:
        script = deque([ErrorCode.NOT_LEADER_OR_FOLLOWER])
        async with ScriptedBroker(script) as broker:
            await send(broker, 3, acks=1, max_in_flight_requests_per_connection=1)
            return broker

    broker = asyncio.run(run())
    assert broker.log == expected(3)
    assert {a.header.producer_id for a in broker.attempts} == {-1}
    assert {a.header.base_sequence for a in broker.attempts} == {-1}


def test_delivery_ends_at_its_deadline_with_the_last_reason() -> None:
    """delivery_timeout_ms bounds all retries together."""

    async def run(limit_ms: int) -> list[Delivery]:
        script = deque([ErrorCode.NOT_ENOUGH_REPLICAS] * 1_000_000)
        async with ScriptedBroker(script) as broker:
            return await send(broker, 1, delivery_timeout_ms=limit_ms)

    def attempt(limit_ms: int) -> None:
        (delivery,) = asyncio.run(run(limit_ms))
        assert delivery.error is not None
        assert delivery.error.code is ErrorCode.NOT_ENOUGH_REPLICAS
        assert "min.insync.replicas" in delivery.error.message

    with_time(attempt)


def test_records_expire_when_no_broker_is_there() -> None:
    """Nobody listens: sending raises, naming the address and how to check it."""

    async def run(limit_ms: int) -> None:
        options = ProducerOptions(delivery_timeout_ms=limit_ms)
        async with Producer("127.0.0.1:1", **options) as producer:
            await producer.send("t", b"v")

    def attempt(limit_ms: int) -> None:
        with pytest.raises(ConnectionFailed) as caught:
            asyncio.run(run(limit_ms))
        assert re.search(r"cannot connect to 127\.0\.0\.1:1 .*nc -vz", str(caught.value))

    with_time(attempt)


def test_an_unknown_apiversions_version_is_asked_again_in_version_0() -> None:
    """KIP-511: the broker answers in version 0 with error 35, and then serves version 0."""

    async def run() -> ScriptedBroker:
        versions = {ApiKey.API_VERSIONS: (0, 0), ApiKey.PRODUCE: (3, 5)}
        async with ScriptedBroker(versions=versions) as broker:
            await send(broker, 1)
            return broker

    broker = asyncio.run(run())
    assert broker.log == expected(1)
    assert broker.asked_versions[:2] == [4, 0]


def test_a_port_that_speaks_http_is_recognised() -> None:
    """The error names what was seen instead of the Kafka protocol."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        await reader.read()
        writer.close()

    async def run(limit_ms: int) -> None:
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        options = ProducerOptions(delivery_timeout_ms=limit_ms)
        async with server, Producer(f"127.0.0.1:{port}", **options) as producer:
            await producer.send("t", b"v")

    def attempt(limit_ms: int) -> None:
        with pytest.raises(ConnectionFailed) as caught:
            asyncio.run(run(limit_ms))
        assert "speaks HTTP bytes" in str(caught.value)

    with_time(attempt)


def test_an_address_that_never_answers_times_out() -> None:
    """A server that accepts and says nothing: an error after the time allowed, not a hang."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    async def run(limit_ms: int) -> None:
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        options = ProducerOptions(delivery_timeout_ms=limit_ms, connect_timeout_ms=limit_ms // 2)
        async with server, Producer(f"127.0.0.1:{port}", **options) as producer:
            await producer.send("t", b"v")

    def attempt(limit_ms: int) -> None:
        with pytest.raises(RequestTimedOut) as caught:
            asyncio.run(run(limit_ms))
        assert "did not answer API_VERSIONS" in str(caught.value)

    with_time(attempt)


def test_a_restart_of_the_broker_loses_and_doubles_nothing(tmp_path) -> None:
    """Killed with -9 under load and started again: each acknowledged record once, in order (P9)."""

    async def run() -> list[bytes | None]:
        with ottla(folder=tmp_path / "broker") as node:
            bootstrap, port = node.bootstrap, node.port
            producer = Producer(bootstrap, batch_size=512, linger_ms=1)
            for number in range(2_000):
                await producer.send("restarts", b"%d" % number)
                if number % 50 == 0:
                    await asyncio.sleep(0.001)
            node.process.kill()
        with ottla(folder=tmp_path / "broker", port=port):
            for number in range(2_000, 4_000):
                await producer.send("restarts", b"%d" % number)
            await producer.close()
            found: list[bytes | None] = []
            async with Consumer(bootstrap) as consumer:
                await consumer.assign([TopicPartition("restarts", 0)])
                while len(found) < 4_000:
                    found += [
                        r.value
                        for batch in (await consumer.poll()).by_partition
                        for r in batch.records
                    ]
            return found

    assert asyncio.run(run()) == [b"%d" % number for number in range(4_000)]


def test_closing_in_time_says_what_was_lost() -> None:
    """A producer closed while the broker refuses fails what it could not deliver."""

    async def run() -> None:
        script = deque([ErrorCode.NOT_ENOUGH_REPLICAS] * 10_000)
        async with ScriptedBroker(script) as broker:
            producer = Producer(broker.bootstrap, **SINGLE)
            await producer.send("t", b"v")
            await producer.close(timeout=0.1)

    with pytest.raises(DeliveryFailed, match="the producer was closed"):
        asyncio.run(run())


def test_records_that_are_sent_again_and_again_are_logged_with_the_reason(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A broker that refuses retriably is not a silent one: after two seconds a warning says why."""

    async def run() -> list[Delivery]:
        script = deque([ErrorCode.KAFKA_STORAGE_ERROR] * 40)
        async with ScriptedBroker(script) as broker:
            return await send(broker, 1, retry_backoff_ms=100, retry_backoff_max_ms=100)

    (delivery,) = asyncio.run(run())
    assert delivery.error is None
    (line,) = {record.getMessage().partition(" after ")[0] for record in caplog.records}
    assert line == "1 record(s) for t-0 are not delivered"
    assert "(KAFKA_STORAGE_ERROR)" in caplog.records[0].getMessage()
