"""The contract of the store, held by the two that need no other process."""

import asyncio
import random
from contextlib import asynccontextmanager

import pytest

from ottla.coordination.memory.faults import StoreFaults
from ottla.coordination.memory.memory import MemoryStore, MemoryTree
from ottla.coordination.sqlite.sqlite import SqliteStore
from tests.unit.coordination.contract import StoreContract


@asynccontextmanager
async def memory(_folder, clients):
    tree = MemoryTree()
    yield [MemoryStore(tree) for _ in range(clients)]


@asynccontextmanager
async def simulated(_folder, clients):
    """With latency and a delay of watches, but nothing lost."""
    faults = StoreFaults(random.Random(1), latency_ms=(0, 1), watch_delay_ms=(1, 1))
    tree = MemoryTree()
    yield [MemoryStore(tree, name=str(number), faults=faults) for number in range(clients)]


@asynccontextmanager
async def sqlite(folder, clients):
    yield [await SqliteStore.open(str(folder / "store.db")) for _ in range(clients)]


class TestMemoryAndSqlite(StoreContract):
    @pytest.fixture(params=[memory, simulated, sqlite], ids=lambda make: make.__name__)
    def run(self, request, tmp_path):
        def run_it(scenario, clients=1):
            async def main():
                async with request.param(tmp_path, clients) as stores:
                    await scenario(*stores)
                    for store in stores:
                        await store.close()

            asyncio.run(main())

        return run_it
