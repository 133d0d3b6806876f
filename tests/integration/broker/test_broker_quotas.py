"""Clients are held to their quotas: answered at once, told to wait, and not read meanwhile."""

import asyncio
import contextlib

from ottla.base.errors import ErrorCode
from ottla.wire.frames import encode_request
from ottla.wire.messages.api_versions import ApiVersionsRequest
from ottla.wire.messages.metadata import MetadataRequest
from ottla.wire.messages.topics import CreatableTopic, CreateTopicsRequest, DeleteTopicsRequest
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
from tests.integration.broker.quota_client import USER, alter, run, skipping


class NamedClient(Client):
    """A client that says who it is."""

    name = "somebody"

    def send(self, message, version):
        self.correlation_id += 1
        parts = encode_request(message, version, self.correlation_id, self.name)
        self.writer.write(b"".join(bytes(part) for part in parts))
        return self.correlation_id


def test_a_producer_beyond_its_quota_is_answered_and_not_read():
    """The records are taken and the answer says how long to wait; what comes too soon waits."""
    loop = asyncio.new_event_loop()
    skipped_s = skipping(loop)

    async def scenario():
        async with connected() as (broker, client):
            await alter(client, USER, producer_byte_rate=1.0)
            answer = await client.call(produce("a", batch(b"x" * 1000)), 9)
            assert produced(answer).error_code == 0
            assert 1_000_000 < answer.throttle_time_ms < 1_200_000
            (connection,) = broker.serving.listeners.open[0].connections
            assert connection.is_muted
            client.send(ApiVersionsRequest(), 0)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(client.receive_frame(), 0.05)
                raise AssertionError("a muted connection was served")
            skipped_s.append(1200)
            await client.receive_frame()
            assert not connection.is_muted

    loop.run_until_complete(scenario())
    loop.close()


def test_requests_already_received_wait_too():
    """Of three in one write, the first is answered before the time, the others after it."""
    loop = asyncio.new_event_loop()
    skipped_s = skipping(loop)

    async def scenario():
        async with connected() as (broker, client):
            await alter(client, USER, producer_byte_rate=1.0)
            for _ in range(3):
                client.send(produce("a", batch(b"x" * 1000)), 9)
            log = broker.partitions.get("a", 0).log
            for count in (1, 2, 3):
                answer = await client.receive(0, 9)
                assert answer.throttle_time_ms > 1_000_000
                assert log.log_end_offset == count
                skipped_s.append(answer.throttle_time_ms / 1000)

    loop.run_until_complete(scenario())
    loop.close()


def test_another_connection_and_another_name_do_not_help():
    """The quota is the user's: whoever comes with whatever client id waits for all."""

    async def scenario():
        async with connected() as (broker, client):
            await alter(client, USER, producer_byte_rate=1.0)
            first = await client.call(produce("a", batch(b"x" * 1000)), 9)
            other = await NamedClient.connect(broker.port)
            second = await other.call(produce("a", batch(b"x" * 1000)), 9)
            assert second.throttle_time_ms > first.throttle_time_ms + 900_000
            other.close()

    run(scenario())


def test_who_has_no_quota_is_not_slowed_by_those_of_others():
    """A quota of one client id is that id's alone."""

    async def scenario():
        async with connected() as (broker, client):
            await alter(client, [("client-id", "somebody")], producer_byte_rate=1.0)
            other = await NamedClient.connect(broker.port)
            slowed = await other.call(produce("a", batch(b"x" * 1000)), 9)
            free = await client.call(produce("a", batch(b"x" * 1000)), 9)
            assert slowed.throttle_time_ms > 0
            assert free.throttle_time_ms == 0
            other.close()

    run(scenario())


def test_a_quota_holds_at_once_and_is_gone_at_once():
    """On a producer that has long been at work, and without a restart."""

    async def scenario():
        async with connected() as (broker, client):
            admin = await Client.connect(broker.port)
            assert (await client.call(produce("a", batch(b"x" * 10)), 9)).throttle_time_ms == 0
            await alter(admin, USER, producer_byte_rate=1_000_000_000.0)
            assert broker.parts.quotas.throttling is not None
            assert (await client.call(produce("a", batch(b"x" * 10)), 9)).throttle_time_ms == 0
            await alter(admin, USER, producer_byte_rate=None)
            assert broker.parts.quotas.throttling is None
            assert (await client.call(produce("a", batch(b"x" * 10)), 9)).throttle_time_ms == 0
            admin.close()

    run(scenario())


def test_a_producer_without_acknowledgements_is_slowed_too():
    """It gets no answer, and is not read."""

    async def scenario():
        async with connected() as (broker, client):
            await alter(client, USER, producer_byte_rate=1.0)
            client.send(produce("a", batch(b"x" * 1000), acks=0), 9)
            (connection,) = broker.serving.listeners.open[0].connections
            await until(lambda: connection.is_muted)
            assert broker.partitions.get("a", 0).log.log_end_offset == 1

    run(scenario())


def test_a_fetch_gets_as_much_as_is_left_and_the_next_one_nothing():
    """Batches of 1,000 bytes: two of a quota of 2,500, one of a quota of 1, and then none."""

    async def scenario():
        async with connected() as (broker, client):
            for _ in range(5):
                await client.call(produce("a", batch(b"x" * 1000)), 9)
            await alter(client, USER, consumer_byte_rate=2500.0)
            # No time goes by: on a slow machine some of the quota would be left again.
            now_ms = broker.parts.quotas.throttling.monotonic_ms()
            broker.parts.quotas.throttling.monotonic_ms = lambda: now_ms
            answer = await client.call(fetch("a", 0), 11)
            assert 2000 <= len(fetched(answer).records) < 2500
            assert answer.throttle_time_ms == 0
            await alter(client, USER, consumer_byte_rate=1.0)
            other = await NamedClient.connect(broker.port)
            greedy = await other.call(fetch("a", 0), 11)
            assert 1000 < len(fetched(greedy).records) < 1500
            nothing = await client.call(fetch("a", 0), 11)
            assert nothing.responses == []
            assert nothing.session_id == 0
            assert nothing.throttle_time_ms > 1_000_000
            other.close()

    run(scenario())


def test_a_batch_larger_than_the_quota_comes_through_and_is_paid_for():
    """Else its reader would never get on."""

    async def scenario():
        async with connected() as (_, client):
            await client.call(produce("a", batch(b"x" * 5000)), 9)
            await alter(client, USER, consumer_byte_rate=1.0)
            answer = await client.call(fetch("a", 0), 11)
            assert len(fetched(answer).records) > 5000
            assert answer.throttle_time_ms > 4_000_000

    run(scenario())


def test_a_fetch_that_waited_is_held_to_the_quota_as_well():
    """Records that come while others have used up the quota are left for later."""

    async def scenario():
        async with connected() as (broker, client):
            await client.call(produce("a", batch(b"x" * 5000)), 9)
            await alter(client, USER, consumer_byte_rate=1.0)
            waiting = await NamedClient.connect(broker.port)
            waiting.send(fetch("a", 1, max_wait_ms=60_000), 11)
            await until(lambda: broker.partitions.get("a", 0).waiters)
            reader = await Client.connect(broker.port)
            assert fetched(await reader.call(fetch("a", 0), 11)).records
            await client.call(produce("a", batch(b"y")), 9)
            answer = await waiting.receive(1, 11)
            assert answer.responses == []
            assert answer.throttle_time_ms > 4_000_000
            for one in (waiting, reader):
                one.close()

    run(scenario())


def test_time_of_requests_is_a_quota_too():
    """A millionth of a percent is used up by any request, and told in its answer."""

    async def scenario():
        async with connected() as (broker, client):
            await alter(client, USER, request_percentage=0.000001)
            other = await NamedClient.connect(broker.port)
            await other.call(MetadataRequest(), 9)
            third = await NamedClient.connect(broker.port)
            answer = await third.call(MetadataRequest(), 9)
            # No longer than a window.
            assert answer.throttle_time_ms == 1000
            for one in (other, third):
                one.close()

    run(scenario())


def create(name, partitions):
    return CreateTopicsRequest(
        topics=[CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)],
        timeout_ms=30_000,
    )


def test_changes_of_topics_beyond_the_quota_are_refused_or_delayed():
    """New versions are told THROTTLING_QUOTA_EXCEEDED, old ones served and slowed (KIP-599)."""

    async def scenario():
        async with connected() as (broker, client):
            await alter(client, USER, controller_mutation_rate=0.001)
            first = await client.call(create("large", 20), 7)
            assert first.topics[0].error_code == 0
            refused = await client.call(create("more", 1), 7)
            assert refused.topics[0].error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED
            assert "controller_mutation_rate" in refused.topics[0].error_message
            assert refused.throttle_time_ms > 10_000_000
            other = await Client.connect(broker.port)
            deleted = await other.call(DeleteTopicsRequest(topic_names=["large"]), 5)
            assert deleted.responses[0].error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED
            third = await Client.connect(broker.port)
            old = await third.call(create("old", 1), 5)
            assert old.topics[0].error_code == 0
            assert old.throttle_time_ms > 10_000_000
            for one in (other, third):
                one.close()

    run(scenario())
