"""What one client can do to the others: nothing. Limits, slow readers, rubbish."""

import asyncio
import contextlib
import random
import struct

import pytest

from ottla.base.clock import SystemClock
from ottla.base.errors import ErrorCode
from ottla.network.output import read_warm
from ottla.record.builder import BatchBuilder
from ottla.storage.disk.filesystem import OsFileSystem
from ottla.wire.frames import encode_request
from ottla.wire.messages.api_versions import ApiVersionsRequest
from ottla.wire.messages.produce import PartitionProduceData
from tests.integration.broker.broker_client import (
    Client,
    batch,
    connected,
    fetch,
    fetched,
    produce,
    produced,
    until,
)


def run(coroutine):
    return asyncio.run(coroutine)


@pytest.mark.parametrize("setting", ["max.connections", "max.connections.per.ip"])
def test_a_connection_too_many_is_closed(setting):
    """The others are served on; a place is free again when one leaves."""

    async def scenario():
        async with connected({setting: "2"}) as (broker, first):
            second = await Client.connect(broker.port)
            assert (await second.call(ApiVersionsRequest(), 0)).error_code == 0
            third = await Client.connect(broker.port)
            assert await third.is_closed()
            assert (await first.call(ApiVersionsRequest(), 0)).error_code == 0
            second.close()
            await until(lambda: len(broker.serving.listeners.open[0].connections) == 1)
            fourth = await Client.connect(broker.port)
            assert (await fourth.call(ApiVersionsRequest(), 0)).error_code == 0
            fourth.close()

    run(scenario())


def test_an_idle_connection_is_closed_and_one_that_waits_is_not():
    """connections.max.idle.ms; a long poll is no idleness. On a loop whose time can be skipped."""
    loop = asyncio.new_event_loop()
    time_s, skipped_s = loop.time, [0.0]
    loop.time = lambda: time_s() + sum(skipped_s)

    async def scenario():
        async with connected({"connections.max.idle.ms": "600000"}) as (broker, client):
            waiting = await Client.connect(broker.port)
            waiting.send(fetch("a", 0, max_wait_ms=36_000_000), 11)
            await until(lambda: broker.partitions.get("a", 0).waiters)
            assert (await client.call(ApiVersionsRequest(), 0)).error_code == 0
            # The sweep after this one finds nothing new of either.
            skipped_s.append(600)
            seen = broker.serving.listeners.open[0].connections
            await until(lambda: not any(connection.active for connection in seen))
            assert len(seen) == 2
            skipped_s.append(600)
            assert await client.is_closed()
            writer = await Client.connect(broker.port)
            assert produced(await writer.call(produce("a", batch(b"x")), 9)).error_code == 0
            assert fetched(await waiting.receive(1, 11)).error_code == 0
            for each in (writer, waiting):
                each.close()

    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        runner.run(scenario())


def test_all_addresses_are_served_in_both_families():
    """An empty host listens everywhere; a client's IPv4 address is shown as one."""

    async def scenario():
        async with connected({"listeners": "PLAINTEXT://:0"}) as (broker, client):
            assert (await client.call(ApiVersionsRequest(), 0)).error_code == 0
            (connection,) = broker.serving.listeners.open[0].connections
            assert (connection.peer_host, connection.local_host) == ("127.0.0.1", "127.0.0.1")

    run(scenario())


def test_a_long_poll_of_a_client_that_left_is_forgotten():
    """Nothing stays registered for nobody."""

    async def scenario():
        async with connected() as (broker, _):
            leaving = await Client.connect(broker.port)
            leaving.send(fetch("a", 0, max_wait_ms=2**31 - 1), 11)
            await until(lambda: len(broker.partitions.get("a", 0).waiters) == 1)
            leaving.close()
            await until(lambda: not broker.partitions.get("a", 0).waiters)

    run(scenario())


def test_a_request_larger_than_allowed_closes_its_connection(caplog):
    """socket.request.max.bytes, said with the setting's name."""

    async def scenario():
        async with connected({"socket.request.max.bytes": "5000"}) as (broker, client):
            client.send(produce("a", batch(b"x" * 6000)), 9)
            assert await client.is_closed()
            assert "socket.request.max.bytes" in caplog.text
            other = await Client.connect(broker.port)
            assert produced(await other.call(produce("a", batch(b"x")), 9)).error_code == 0
            other.close()

    run(scenario())


def test_large_requests_are_served():
    """More than the shared receive buffer holds, several at once on several connections."""

    async def scenario():
        settings = {"message.max.bytes": "8000000"}
        async with connected(settings) as (broker, client):
            others = [await Client.connect(broker.port) for _ in range(3)]
            for each in (client, *others):
                for _ in range(2):
                    each.send(produce("a", batch(b"x" * 3_000_000)), 9)
            offsets = set()
            for each in (client, *others):
                for _ in range(2):
                    answer = produced(await each.receive(0, 9))
                    assert answer.error_code == ErrorCode.NONE
                    offsets.add(answer.base_offset)
            assert offsets == set(range(8))
            for each in others:
                each.close()

    run(scenario())


def bomb():
    """31 MiB of zeros in 31 KB."""
    builder = BatchBuilder(compression=1)
    builder.append(SystemClock().now_ms(), b"key", bytes(31 << 20))
    return bytes(builder.build())


def test_a_request_after_one_that_had_much_expanded_waits_for_the_next_turn():
    """A receive holds thirty such requests, which held the loop for seconds."""

    async def scenario():
        async with connected({"log.cleanup.policy": "compact"}) as (broker, client):
            partition = broker.partitions.get("a", 0)
            request = b"".join(
                bytes(part) for part in encode_request(produce("a", bomb()), 9, 1, "x")
            )
            # As many as one send takes at once, so that one receive has them.
            client.writer.write(request * 3)
            ends = []

            async def turns():
                while partition.log.log_end_offset < 3:
                    ends.append(partition.log.log_end_offset)
                    await asyncio.sleep(0)

            await asyncio.wait_for(turns(), 60)
            assert {1, 2} <= set(ends)
            for _ in range(3):
                assert produced(await client.receive(0, 9)).error_code == ErrorCode.NONE

    run(scenario())


def test_batches_of_one_request_are_expanded_up_to_a_bound():
    """The others are refused with an error after which clients send them again."""

    async def scenario():
        settings = {"log.cleanup.policy": "compact", "num.partitions": "4"}
        async with connected(settings) as (_, client):
            small = bomb()
            body = produce("a", small)
            body.topic_data[0].partition_data = [
                PartitionProduceData(index=index, records=small) for index in range(4)
            ]
            answer = await client.call(body, 9)
            assert [each.error_code for each in answer.responses[0].partition_responses] == [
                ErrorCode.NONE,
                ErrorCode.NONE,
                ErrorCode.THROTTLING_QUOTA_EXCEEDED,
                ErrorCode.THROTTLING_QUOTA_EXCEEDED,
            ]
            again = await client.call(produce("a", small, partition=3), 9)
            assert produced(again).error_code == ErrorCode.NONE

    run(scenario())


def test_requests_that_are_announced_and_never_sent_stop_nobody_elses():
    """An address, or a user, gets a quarter of queued.max.request.bytes, which is 1 GiB if unset.

    Twelve headers of 90 MB, without a body, took all of it: 900 KB of another client waited.
    """

    async def scenario():
        async with connected() as (broker, _):
            idle = [
                await asyncio.open_connection("127.0.0.1", broker.port, local_addr=("127.0.0.2", 0))
                for _ in range(12)
            ]
            for _, writer in idle:
                writer.write(struct.pack(">ihh", 90 << 20, 0, 9))
            limits = broker.serving.listeners.open[0]
            await until(lambda: limits.budget.held_bytes >= 180 << 20)
            other = await Client.connect(broker.port)
            async with asyncio.timeout(30):
                answer = await other.call(produce("a", batch(b"x" * 900_000)), 9)
            assert produced(answer).error_code == 0
            other.close()
            for _, writer in idle:
                writer.close()

    run(scenario())


def test_a_reader_that_does_not_read_costs_little_and_stops_nobody(tmp_path, monkeypatch):
    """50 fetches of 2 MB each, unread: no answer is read from the file before its time."""
    read = []

    def reading(*arguments):
        read.append(read_warm(*arguments))
        return read[-1]

    monkeypatch.setattr("ottla.network.output.read_warm", reading)

    async def scenario():
        settings = {"log.dirs": str(tmp_path)}
        async with connected(settings, filesystem=OsFileSystem()) as (broker, client):
            sent = batch(b"x" * 900_000)
            for _ in range(2):
                await client.call(produce("a", sent), 9)
            slow = await Client.connect(broker.port)
            slow.writer.transport.pause_reading()
            for _ in range(50):
                slow.send(fetch("a", 0, partition_max_bytes=4 << 20, max_bytes=4 << 20), 11)
            port = slow.writer.get_extra_info("sockname")[1]
            found = {}

            def is_blocked():
                found.update((c.peer_port, c) for c in broker.serving.listeners.open[0].connections)
                return port in found and found[port].output.blocked

            await until(is_blocked)
            connection = found[port]
            assert produced(await client.call(produce("a", batch(b"x")), 9)).error_code == 0
            assert connection.output.blocked
            # What the system's buffers of one connection take, and one chunk; of 90 MB.
            assert sum(read) < 32 << 20
            slow.writer.transport.resume_reading()
            for _ in range(50):
                assert len(fetched(await slow.receive(1, 11)).records) >= 2 * len(sent)
            slow.close()

    run(scenario())


def test_mutated_requests_are_refused_or_answered_and_harm_nobody(caplog):
    """2,000 requests with bytes changed, cut and repeated: an answer, or a closed connection."""

    async def scenario():
        rng = random.Random(20)
        originals = [
            b"".join(bytes(part) for part in encode_request(message, version, 1, "fuzz"))[4:]
            for message, version in (
                (produce("a", batch(b"1", b"2")), 3),
                (produce("a", batch(b"1", b"2")), 9),
                (fetch("a", 0), 4),
                (fetch("a", 0), 12),
                (ApiVersionsRequest(client_software_name="x", client_software_version="1"), 3),
            )
        ]
        async with connected() as (broker, client):
            for _ in range(2000):
                body = bytearray(rng.choice(originals))
                for _ in range(rng.randint(1, 4)):
                    body[rng.randrange(len(body))] = rng.randrange(256)
                if rng.random() < 0.3:
                    del body[rng.randrange(8, len(body)) :]
                attacker = await Client.connect(broker.port)
                attacker.writer.write(struct.pack(">i", len(body)) + body)
                # Long polls and acks=0 say nothing: they need not.
                with contextlib.suppress(TimeoutError, ConnectionError):
                    await asyncio.wait_for(attacker.reader.read(4), 0.02)
                attacker.close()
            assert produced(await client.call(produce("a", batch(b"x")), 9)).error_code == 0

    run(scenario())
    assert "failed unexpectedly" not in caplog.text
