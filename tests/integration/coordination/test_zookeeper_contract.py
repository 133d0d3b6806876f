"""The contract of the store, held by a real ZooKeeper: one server, and three."""

import asyncio
import itertools

import pytest

from ottla.coordination.connect import connect
from tests.unit.coordination.contract import StoreContract

_numbers = itertools.count()


class TestZookeeper(StoreContract):
    @pytest.fixture(params=["server", "three"])
    def run(self, request):
        """Each scenario has a chroot, and so an empty store, of its own."""
        hosts = request.getfixturevalue(request.param).hosts
        address = f"zookeeper://{hosts}/contract/{next(_numbers)}"

        def run_it(scenario, clients=1):
            async def main():
                stores = [await connect(address) for _ in range(clients)]
                try:
                    await scenario(*stores)
                finally:
                    for store in stores:
                        await store.close()

            asyncio.run(main())

        return run_it
