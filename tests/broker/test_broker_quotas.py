"""Clients are held to their quotas: answered at once, told to wait, and not read meanwhile."""

import asyncio
import contextlib

from broker_client import Client, batch, connected, fetch, fetched, produce, produced, until

from ottla.base.errors import ErrorCode
from ottla.coordination.memory import MemoryStore
from ottla.wire.frames import encode_request
from ottla.wire.messages import alter_client_quotas, describe_client_quotas
from ottla.wire.messages.alter_client_quotas import AlterClientQuotasRequest, OpData
from ottla.wire.messages.api_versions import ApiVersionsRequest
from ottla.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.wire.messages.delete_topics import DeleteTopicsRequest
from ottla.wire.messages.describe_client_quotas import ComponentData, DescribeClientQuotasRequest
from ottla.wire.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    UserName,
)
from ottla.wire.messages.metadata import MetadataRequest

PRODUCE_KEY, FETCH_KEY = "producer_byte_rate", "consumer_byte_rate"


def run(coroutine):
    return asyncio.run(coroutine)


class NamedClient(Client):
    """A client that says who it is."""

    name = "somebody"

    def send(self, message, version):
        self.correlation_id += 1
        parts = encode_request(message, version, self.correlation_id, self.name)
        self.writer.write(b"".join(bytes(part) for part in parts))
        return self.correlation_id


async def alter(client, entity, *, validate_only=False, **values):
    """Set quotas; None removes one. The entry of the answer."""
    entry = alter_client_quotas.EntryData(
        entity=[
            alter_client_quotas.EntityData(entity_type=kind, entity_name=name)
            for kind, name in entity
        ],
        ops=[
            OpData(key=key, value=value or 0.0, remove=value is None)
            for key, value in values.items()
        ],
    )
    request = AlterClientQuotasRequest(entries=[entry], validate_only=validate_only)
    (answer,) = (await client.call(request, 1)).entries
    return answer


async def quotas(client, *conditions, strict=False):
    """What is described: {entity: {key: value}}."""
    request = DescribeClientQuotasRequest(
        components=[
            ComponentData(entity_type=kind, match_type=how, match=name)
            for kind, how, name in conditions
        ],
        strict=strict,
    )
    answer = await client.call(request, 1)
    assert answer.error_code == 0, answer.error_message
    return {
        tuple((part.entity_type, part.entity_name) for part in entry.entity): {
            value.key: value.value for value in entry.values
        }
        for entry in answer.entries
    }


USER = [("user", "ANONYMOUS")]


def test_quotas_are_set_told_and_removed():
    """Of users, client ids and addresses; a value that is altered leaves the others."""

    async def scenario():
        async with connected() as (_, client):
            both = [("user", None), ("client-id", "c/1")]
            await alter(client, USER, producer_byte_rate=1e6, consumer_byte_rate=2e6)
            await alter(client, both, request_percentage=12.5)
            await alter(client, [("ip", "10.0.0.1")], connection_creation_rate=5.0)
            assert await quotas(client) == {
                tuple(USER): {PRODUCE_KEY: 1e6, FETCH_KEY: 2e6},
                tuple(both): {"request_percentage": 12.5},
                (("ip", "10.0.0.1"),): {"connection_creation_rate": 5.0},
            }
            await alter(client, USER, producer_byte_rate=None)
            await alter(client, both, request_percentage=None)
            assert await quotas(client, ("user", 2, None)) == {tuple(USER): {FETCH_KEY: 2e6}}
            assert await quotas(client, ("user", 0, "ANONYMOUS"), strict=True) != {}
            assert await quotas(client, ("user", 1, None)) == {}

    run(scenario())


def test_a_trial_sets_nothing():
    """validate_only: refused what would be, and nothing changed."""

    async def scenario():
        async with connected() as (_, client):
            good = await alter(client, USER, validate_only=True, producer_byte_rate=5.0)
            bad = await alter(client, USER, validate_only=True, producer_byte_rate=-5.0)
            assert (good.error_code, bad.error_code) == (0, ErrorCode.INVALID_REQUEST)
            assert await quotas(client) == {}

    run(scenario())


def test_what_is_no_quota_is_refused_with_words():
    """An unknown key, a negative rate, a strange entity; the others of the request are altered."""

    async def scenario():
        async with connected() as (_, client):
            for entity, values, words in (
                (USER, {"speed": 1.0}, "Invalid configuration key speed"),
                (USER, {PRODUCE_KEY: -1.0}, "must be greater than 0"),
                (USER, {PRODUCE_KEY: 1.5}, "fractional"),
                (USER, {"connection_creation_rate": 1.0}, "Invalid configuration key"),
                ([("group", "g")], {PRODUCE_KEY: 1.0}, "entity type: group"),
                ([], {PRODUCE_KEY: 1.0}, "empty client quota entity"),
            ):
                answer = await alter(client, entity, **values)
                assert answer.error_code == ErrorCode.INVALID_REQUEST
                assert words in answer.error_message
            request = DescribeClientQuotasRequest(
                components=[ComponentData(entity_type="user", match_type=9, match=None)]
            )
            assert (await client.call(request, 1)).error_code == ErrorCode.INVALID_REQUEST
            assert await quotas(client) == {}

    run(scenario())


def test_quotas_stand_in_the_store_where_kafka_had_them():
    """And a broker that starts later holds clients to them."""

    async def scenario():
        store = MemoryStore()
        async with connected(store=store) as (_, client):
            await alter(client, [("user", "a b"), ("client-id", None)], producer_byte_rate=7.0)
        node = await store.get("/config/users/a%20b/clients/<default>")
        assert node.data == b'{"version":1,"config":{"producer_byte_rate":"7"}}'
        async with connected(store=store, topics=()) as (_, client):
            assert await quotas(client) == {
                (("user", "a b"), ("client-id", None)): {PRODUCE_KEY: 7.0}
            }

    run(scenario())


def test_a_damaged_quota_is_left_out():
    """What nobody can read limits nobody, and the broker starts."""

    async def scenario():
        store = MemoryStore()
        await store.ensure("/config/users/broken")
        await store.ensure("/config/clients/c")
        await store.ensure("/config/ips")
        async with connected(store=store) as (broker, client):
            assert await quotas(client) == {}
            assert broker.throttling is None

    run(scenario())


def skipping(loop):
    """A list; what is appended to it is skipped of the loop's time, in seconds."""
    time_s, skipped_s = loop.time, [0.0]
    loop.time = lambda: time_s() + sum(skipped_s)
    return skipped_s


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
            (connection,) = broker.listeners.open[0].connections
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
            assert broker.throttling is not None
            assert (await client.call(produce("a", batch(b"x" * 10)), 9)).throttle_time_ms == 0
            await alter(admin, USER, producer_byte_rate=None)
            assert broker.throttling is None
            assert (await client.call(produce("a", batch(b"x" * 10)), 9)).throttle_time_ms == 0
            admin.close()

    run(scenario())


def test_a_producer_without_acknowledgements_is_slowed_too():
    """It gets no answer, and is not read."""

    async def scenario():
        async with connected() as (broker, client):
            await alter(client, USER, producer_byte_rate=1.0)
            client.send(produce("a", batch(b"x" * 1000), acks=0), 9)
            (connection,) = broker.listeners.open[0].connections
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
            now_ms = broker.throttling.monotonic_ms()
            broker.throttling.monotonic_ms = lambda: now_ms
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


def test_describing_is_strict_where_asked():
    """A condition on the user alone means no entity of a user and a client id, strictly."""

    async def scenario():
        async with connected() as (_, client):
            await alter(client, [*USER, ("client-id", "c")], producer_byte_rate=1e9)
            assert len(await quotas(client, ("user", 2, None))) == 1
            assert await quotas(client, ("user", 2, None), strict=True) == {}
            request = DescribeClientQuotasRequest(
                components=[
                    describe_client_quotas.ComponentData(entity_type="ip", match_type=2),
                    describe_client_quotas.ComponentData(entity_type="user", match_type=2),
                ]
            )
            answer = await client.call(request, 0)
            assert answer.error_code == ErrorCode.INVALID_REQUEST
            assert answer.entries is None

    run(scenario())


async def tries(port):
    """Whether a new connection is served."""
    client = await Client.connect(port)
    try:
        return (await client.call(ApiVersionsRequest(), 0)).error_code == 0
    except (asyncio.IncompleteReadError, ConnectionError):
        return False
    finally:
        client.close()


def test_an_address_that_connects_too_fast_is_closed():
    """connection_creation_rate of an ip; another's, or none, is not concerned."""

    async def scenario():
        loop = asyncio.get_running_loop()
        started_s = loop.time()
        async with connected() as (broker, client):
            await alter(client, [("ip", "10.9.9.9")], connection_creation_rate=1.0)
            assert await tries(broker.port)
            await alter(client, [("ip", "127.0.0.1")], connection_creation_rate=1.0)
            outcomes = await asyncio.gather(*(tries(broker.port) for _ in range(30)))
            assert outcomes.count(True) >= 1
            assert outcomes.count(True) <= 1 + (loop.time() - started_s)
            await alter(client, [("ip", "127.0.0.1")], connection_creation_rate=None)
            assert await tries(broker.port)

    run(scenario())


def test_connections_beyond_the_rate_of_the_broker_are_served_later():
    """max.connection.creation.rate: nobody is closed."""
    loop = asyncio.new_event_loop()
    skipped_s = skipping(loop)

    async def scenario():
        async with connected({"max.connection.creation.rate": "1"}) as (broker, _):
            late = await Client.connect(broker.port)
            late.send(ApiVersionsRequest(), 0)
            await until(lambda: len(broker.listeners.open[0].connections) == 2)
            *_, connection = broker.listeners.open[0].connections
            if connection.is_muted:
                skipped_s.append(60)
            await late.receive_frame()
            late.close()

    loop.run_until_complete(scenario())
    loop.close()


def test_limits_of_connections_change_while_running():
    """max.connections, and an address with a limit of its own."""

    async def scenario():
        async with connected() as (broker, _):
            assert await tries(broker.port)
            broker.settings.set_dynamic({"max.connections.per.ip.overrides": "127.0.0.1:1"}, {})
            assert not await tries(broker.port)
            broker.settings.set_dynamic({}, {})
            await until(lambda: len(broker.listeners.open[0].connections) == 1)
            assert await tries(broker.port)

    run(scenario())


def test_nobody_has_credentials():
    """kafka-configs asks for them with a user's quotas: named users are unknown, of all none."""

    async def scenario():
        async with connected() as (_, client):
            everybody = await client.call(DescribeUserScramCredentialsRequest(users=None), 0)
            assert (everybody.error_code, everybody.results) == (0, [])
            names = [UserName(name=name) for name in ("alice", "bob", "bob")]
            named = await client.call(DescribeUserScramCredentialsRequest(users=names), 0)
            assert [(result.user, result.error_code) for result in named.results] == [
                ("alice", ErrorCode.RESOURCE_NOT_FOUND),
                ("bob", ErrorCode.DUPLICATE_RESOURCE),
            ]

    run(scenario())
