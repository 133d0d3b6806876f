"""A member of a group whose offsets a transaction holds open."""

import asyncio
import contextlib

import pytest

import ottla.testing
from ottla.base.errors import ErrorCode, OttlaError
from ottla.client import Consumer, ConsumerOptions

from .stories import NAME, SETTINGS, producer_of


def test_member_that_was_not_told_its_offsets_asks_again() -> None:
    """While a transaction holds them open nobody tells them; in the end all is read."""

    async def whole() -> None:
        async with ottla.testing.simulate(3, SETTINGS) as cluster:
            await cluster.create_topic("t")
            options = ConsumerOptions(group_id="g", default_api_timeout_ms=1_000)
            async with producer_of(cluster) as producer:
                await producer.init_transactions()
                async with producer.transaction():
                    await producer.send_batch("t", [b"%d" % number for number in range(9)])
                await producer.begin_transaction()
                await producer.send_offsets_to_transaction({NAME: 5}, "g")
                async with Consumer(cluster.bootstrap, **options) as consumer, asyncio.timeout(60):
                    consumer.subscribe("t")
                    with pytest.raises(OttlaError) as raised:
                        await _read_nothing(consumer)
                    assert raised.value.code is ErrorCode.UNSTABLE_OFFSET_COMMIT
                    await producer.commit_transaction()
                    found = []
                    while len(found) < 4:
                        found += await _values(consumer)
                    assert found == [b"5", b"6", b"7", b"8"]

    ottla.testing.run_virtual(whole(), 1)


async def _read_nothing(consumer: Consumer) -> None:
    while True:
        assert await consumer.poll(0.5) == []


async def _values(consumer: Consumer) -> list[bytes | None]:
    with contextlib.suppress(OttlaError):
        return [
            record.value
            for batch in (await consumer.poll(0.5)).by_partition
            for record in batch.records
        ]
    return []
