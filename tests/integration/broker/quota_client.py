"""Sets quotas and asks for them, as a client of bare wire messages; and skips time."""

import asyncio

from ottla.wire.messages import client_quotas
from ottla.wire.messages.client_quotas import (
    AlterClientQuotasRequest,
    ComponentData,
    DescribeClientQuotasRequest,
    OpData,
)

PRODUCE_KEY, FETCH_KEY = "producer_byte_rate", "consumer_byte_rate"
USER = [("user", "ANONYMOUS")]


def run(coroutine):
    return asyncio.run(coroutine)


async def alter(client, entity, *, validate_only=False, **values):
    """Set quotas; None removes one. The entry of the answer."""
    entry = client_quotas.EntryData(
        entity=[
            client_quotas.EntityData(entity_type=kind, entity_name=name) for kind, name in entity
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


def skipping(loop):
    """A list; what is appended to it is skipped of the loop's time, in seconds."""
    time_s, skipped_s = loop.time, [0.0]
    loop.time = lambda: time_s() + sum(skipped_s)
    return skipped_s
