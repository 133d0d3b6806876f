"""Quotas are set, told and kept in the store; what is none is refused."""

from ottla.base.errors import ErrorCode
from ottla.coordination.memory.memory import MemoryStore
from ottla.wire.messages import client_quotas
from ottla.wire.messages.client_quotas import ComponentData, DescribeClientQuotasRequest
from ottla.wire.messages.user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    UserName,
)
from tests.integration.broker.broker_client import connected
from tests.integration.broker.quota_client import FETCH_KEY, PRODUCE_KEY, USER, alter, quotas, run


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
            assert broker.parts.quotas.throttling is None

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
                    client_quotas.ComponentData(entity_type="ip", match_type=2),
                    client_quotas.ComponentData(entity_type="user", match_type=2),
                ]
            )
            answer = await client.call(request, 0)
            assert answer.error_code == ErrorCode.INVALID_REQUEST
            assert answer.entries is None

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
