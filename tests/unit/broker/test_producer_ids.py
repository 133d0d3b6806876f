"""Producer ids: unique for ever, whatever crashes."""

import asyncio

import pytest

from ottla.base.errors import OttlaError
from ottla.broker.produce.producer_ids import BLOCK_SIZE, ProducerIdBlocks
from ottla.coordination.interface.store import Create, NodeExists
from ottla.coordination.memory.memory import MemoryStore, MemoryTree
from ottla.metadata import paths


async def take(ids, count):
    taken = []
    for _ in range(count):
        producer_id = ids.take()
        taken.append(await ids.reserve() if producer_id is None else producer_id)
    return taken


def test_ids_are_taken_from_a_block_in_order():
    """Nothing is given before a block is reserved."""

    async def main():
        ids = ProducerIdBlocks(MemoryStore(), 1)
        assert ids.take() is None
        assert await take(ids, 3) == [0, 1, 2]

    asyncio.run(main())


def test_a_used_up_block_is_followed_by_the_next():
    """Blocks of 1000, as Kafka's."""

    async def main():
        ids = ProducerIdBlocks(MemoryStore(), 1)
        assert await take(ids, BLOCK_SIZE + 2) == list(range(1002))

    asyncio.run(main())


def test_a_crash_skips_ids_and_repeats_none():
    """The new broker begins where the reserved block ended."""

    async def main():
        tree = MemoryTree()
        before = await take(ProducerIdBlocks(MemoryStore(tree), 1), 5)
        after = await take(ProducerIdBlocks(MemoryStore(tree), 1), 5)
        assert before == [0, 1, 2, 3, 4]
        assert after == [1000, 1001, 1002, 1003, 1004]

    asyncio.run(main())


def test_brokers_take_different_blocks():
    """Each has ids of its own."""

    async def main():
        tree = MemoryTree()
        one, two = ProducerIdBlocks(MemoryStore(tree), 1), ProducerIdBlocks(MemoryStore(tree), 2)
        assert await take(one, 1) + await take(two, 1) + await take(one, 1) == [0, 1000, 1]

    asyncio.run(main())


def test_a_lost_race_for_a_block_takes_the_next():
    """Compare-and-set: the loser reads again."""

    class Racing(MemoryStore):
        races = 2

        async def multi(self, operations):
            if self.races:
                self.races -= 1
                await take(ProducerIdBlocks(MemoryStore(self._tree), 2), 1)
            return await super().multi(operations)

    async def main():
        assert await take(ProducerIdBlocks(Racing(), 1), 1) == [2000]

    asyncio.run(main())


def test_many_who_ask_at_once_share_one_reservation():
    """One block, one number each."""

    async def main():
        store = MemoryStore()
        ids = ProducerIdBlocks(store, 1)
        taken = await asyncio.gather(*(ids.reserve() for _ in range(10)))
        assert sorted(taken) == list(range(10))
        assert (await store.get(paths.PRODUCER_IDS)).version == 0

    asyncio.run(main())


@pytest.mark.parametrize("data", [b"", b"{}", b'{"block_end":"x"}', b"[]"])
def test_a_damaged_block_stops_the_giving_of_ids(data):
    """Guessing could repeat one."""

    async def main():
        store = MemoryStore()
        await store.multi([Create(paths.PRODUCER_IDS, data)])
        with pytest.raises(OttlaError) as raised:
            await ProducerIdBlocks(store, 1).reserve()
        assert paths.PRODUCER_IDS in raised.value.message
        with pytest.raises(NodeExists):
            await store.multi([Create(paths.PRODUCER_IDS)])

    asyncio.run(main())
