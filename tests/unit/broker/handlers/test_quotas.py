"""AlterClientQuotas and DescribeClientQuotas: each entity stands for itself."""

import pytest

from ottla.base.errors import ErrorCode
from ottla.broker.handlers.client_quotas import AlterClientQuotas, DescribeClientQuotas
from ottla.wire.messages.client_quotas import (
    AlterClientQuotasRequest,
    ComponentData,
    DescribeClientQuotasRequest,
    EntityData,
    EntryData,
    OpData,
)

from .cluster_world import call, play

EXACT, DEFAULT, ANY = 0, 1, 2
ALICE, APP = [("user", "alice")], [("client-id", "app")]
RATE = "producer_byte_rate"


def entry(entity, *changes):
    return EntryData(
        entity=[EntityData(entity_type=kind, entity_name=name) for kind, name in entity],
        ops=[OpData(key=key, value=value or 0, remove=value is None) for key, value in changes],
    )


async def alter(world, *entries, **fields):
    request = AlterClientQuotasRequest(entries=list(entries), **fields)
    answer = await call(AlterClientQuotas(world.quotas.stored), request)
    return [
        (
            [(part.entity_type, part.entity_name) for part in each.entity],
            ErrorCode(each.error_code).name,
        )
        for each in answer.entries
    ]


async def describe(world, *components, strict=False):
    request = DescribeClientQuotasRequest(
        components=[
            ComponentData(entity_type=kind, match_type=how, match=name)
            for kind, how, name in components
        ],
        strict=strict,
    )
    answer = await call(DescribeClientQuotas(world.quotas.stored), request)
    if answer.error_code:
        assert answer.entries is None
        return ErrorCode(answer.error_code).name
    return [
        (
            [(part.entity_type, part.entity_name) for part in each.entity],
            {value.key: value.value for value in each.values},
        )
        for each in answer.entries
    ]


def test_quotas_that_are_set_are_described_until_they_are_removed():
    """A filter finds those of its entities."""

    async def scenario(world):
        assert await alter(
            world,
            entry(ALICE, (RATE, 1000.0), ("request_percentage", 50.0)),
            entry(APP, (RATE, 2000.0)),
        ) == [(ALICE, "NONE"), (APP, "NONE")]
        assert await describe(world, ("user", EXACT, "alice")) == [
            (ALICE, {RATE: 1000.0, "request_percentage": 50.0})
        ]
        assert await describe(world, ("client-id", ANY, None)) == [(APP, {RATE: 2000.0})]
        assert await describe(world, ("user", DEFAULT, None)) == []
        await alter(world, entry(ALICE, (RATE, None)))
        assert await describe(world, ("user", EXACT, "alice"), strict=True) == [
            (ALICE, {"request_percentage": 50.0})
        ]

    play(scenario)


def test_a_trial_run_sets_nothing():
    """It says what would be refused."""

    async def scenario(world):
        answer = await alter(
            world, entry(ALICE, (RATE, 1000.0)), entry(APP, (RATE, -1.0)), validate_only=True
        )
        assert answer == [(ALICE, "NONE"), (APP, "INVALID_REQUEST")]
        assert await describe(world) == []

    play(scenario)


def test_an_entity_that_is_refused_does_not_hinder_the_others():
    """One altered twice, one with a key twice, a kind and a key that there are not."""

    async def scenario(world):
        strange = [("tenant", "x")]
        assert await alter(
            world,
            entry(ALICE, (RATE, 1000.0)),
            entry(ALICE, (RATE, 2000.0)),
            entry(APP, (RATE, 1.0), (RATE, 2.0)),
            entry(strange, (RATE, 1.0)),
            entry([("ip", "10.0.0.1")], (RATE, 1.0)),
        ) == [
            (ALICE, "NONE"),
            (ALICE, "INVALID_REQUEST"),
            (APP, "INVALID_REQUEST"),
            (strange, "INVALID_REQUEST"),
            ([("ip", "10.0.0.1")], "INVALID_REQUEST"),
        ]
        assert await describe(world) == [(ALICE, {RATE: 1000.0})]

    play(scenario)


@pytest.mark.parametrize(
    ("components", "code"),
    [
        ([("tenant", ANY, None)], "UNSUPPORTED_VERSION"),
        ([("user", EXACT, None)], "INVALID_REQUEST"),
        ([("user", ANY, None), ("user", DEFAULT, None)], "INVALID_REQUEST"),
    ],
)
def test_a_filter_that_means_nothing_is_refused(components, code):
    """The answer has no entries then."""

    async def scenario(world):
        assert await describe(world, *components) == code

    play(scenario)


def test_an_error_of_the_whole_request_is_on_every_entity():
    """The message, too."""
    request = AlterClientQuotasRequest(entries=[entry(ALICE), entry(APP)])
    answer = AlterClientQuotas.on_error(request, ErrorCode.NOT_CONTROLLER, "why", 1)
    assert [(each.error_code, each.error_message) for each in answer.entries] == [
        (ErrorCode.NOT_CONTROLLER, "why")
    ] * 2
