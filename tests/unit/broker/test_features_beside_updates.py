"""Features that change while an update of the controller is being applied."""

import asyncio

from ottla.base.ids import BrokerId
from ottla.broker.cluster.controller_fence import ControllerFence
from ottla.broker.cluster.metadata_updates import MetadataUpdates
from ottla.broker.cluster.registration import prepare
from ottla.broker.configs.features import Features
from ottla.broker.runtime.signal import Signal
from ottla.broker.runtime.view import ClusterView
from ottla.coordination.memory.memory import MemoryStore
from ottla.metadata.features import FeatureUpdate
from ottla.testing.clock import ManualClock
from ottla.wire.messages.between_brokers import UpdateMetadataBroker, UpdateMetadataRequest


class SlowHost:
    """Opens partitions until the test lets it finish."""

    def __init__(self):
        self.began = asyncio.Event()
        self.may_end = asyncio.Event()

    async def apply(self, _image):
        self.began.set()
        await self.may_end.wait()

    def update_configs(self, _image):
        pass


def test_levels_that_change_during_an_update_are_not_lost():
    """The update was derived from the image before; what it replaces has the new levels."""

    async def main():
        store = MemoryStore()
        await prepare(store, [])
        view = ClusterView(BrokerId(1), "cluster")
        fence = ControllerFence()
        fence.registered(1)
        host = SlowHost()
        updates = MetadataUpdates(view, store, fence, host, Signal())
        features = Features(view, updates, store, ManualClock())
        request = UpdateMetadataRequest(
            controller_id=1,
            controller_epoch=1,
            broker_epoch=1,
            live_brokers=[UpdateMetadataBroker(id=1)],
        )
        applying = asyncio.create_task(updates.apply(request))
        await host.began.wait()
        changing = asyncio.create_task(
            features.update([FeatureUpdate("share.version", 0, 2)], validate_only=False)
        )
        for _ in range(20):
            await asyncio.sleep(0)
        host.may_end.set()
        await asyncio.gather(applying, changing)

        assert list(view.image.brokers) == [1]
        assert view.image.features["share.version"] == 0

    asyncio.run(main())
