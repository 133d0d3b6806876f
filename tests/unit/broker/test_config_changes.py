"""Notices of changed settings: each reaches every broker, or the broker reads everything again."""

import asyncio

import pytest

from ottla.broker.configs.changes import ConfigChanges, change_notice, reading_all
from ottla.coordination.interface.store import Create
from ottla.coordination.memory.memory import MemoryStore, MemoryTree
from ottla.metadata import paths
from ottla.testing.clock import ManualClock

KEPT_MS = 15 * 60_000


class Follower:
    """A broker's part that follows the changes, and what it was called with."""

    def __init__(self, tree, clock):
        self.store = MemoryStore(tree)
        self.seen = []
        self.reloads = 0
        self.changes = ConfigChanges(self.store, clock, self._on_changed, self._reload)

    async def _on_changed(self, entity):
        self.seen.append(entity)

    async def _reload(self):
        self.reloads += 1


async def settle():
    for _ in range(200):
        await asyncio.sleep(0)


@pytest.mark.parametrize(("away_ms", "reloads"), [(KEPT_MS // 2, 0), (2 * KEPT_MS, 1)])
def test_a_broker_that_missed_notices_reads_everything_again(away_ms, reloads):
    """Notices live for a quarter of an hour; who was away for longer cannot know what changed."""

    async def scenario():
        tree, clock = MemoryTree(), ManualClock()
        here, away = Follower(tree, clock), Follower(tree, clock)
        await here.store.ensure(paths.CONFIG_CHANGES)
        for follower in (here, away):
            await follower.changes.start()
        here.changes.follow()
        await here.store.multi([change_notice("/config/acls/literal/Topic/a", clock.now_ms())])
        await settle()
        clock.advance(away_ms)
        await here.store.multi([change_notice("/config/topics/b", clock.now_ms())])
        await settle()
        assert (here.seen, here.reloads) == (["acls/literal/Topic/a", "topics/b"], 0)
        # Its watch is set, but it has read nothing since `start`.
        away.changes.follow()
        await settle()
        assert away.reloads == reloads
        assert away.seen == ["acls/literal/Topic/a"] * (1 - reloads) + ["topics/b"]
        # What is new from now on comes as to all others.
        await here.store.multi([change_notice("/config/topics/c", clock.now_ms())])
        await settle()
        assert (away.seen[-1], away.reloads) == ("topics/c", reloads)
        for follower in (here, away):
            follower.changes.stop()

    asyncio.run(scenario())


def test_everything_is_every_node_of_settings_and_all_acls():
    """Folders and notices are none."""

    async def scenario():
        store = MemoryStore()
        for folder in ("/config/topics", "/config/acls/literal/Topic", paths.CONFIG_CHANGES):
            await store.ensure(folder)
        for node in ("/config/topics/t", "/config/acls/literal/Topic/t"):
            await store.multi([Create(node, b"{}")])
        await store.multi([change_notice("/config/topics/t", 0)])
        seen = []

        async def on_changed(entity):
            seen.append(entity)

        async def load_acls():
            seen.append("acls")

        await reading_all(store, on_changed, [load_acls])()
        assert seen == ["acls", "topics/t"]

    asyncio.run(scenario())
