"""What every implementation of the store promises; ZooKeeper's semantics, run against each.

A test module derives a class and gives it the fixture `run`, which runs a scenario with one or
more clients of one empty store.
"""

import asyncio

import pytest

from ottla.base.clock import SystemClock
from ottla.coordination.interface.store import (
    BadVersion,
    Check,
    Create,
    Delete,
    Node,
    NodeExists,
    NoNode,
    NotEmpty,
    SessionExpired,
    Set,
    StoreRolledBack,
)
from tests.unit.coordination.writes import create, delete, set_data

# Far more than anything here takes.
PATIENCE_S = 120
LEASE_MS = 10_000


async def eventually(condition):
    """Wait until it holds; what is told may come a little later."""
    async with asyncio.timeout(PATIENCE_S):
        while not condition():  # noqa: ASYNC110 A condition may hold without anybody saying so.
            await asyncio.sleep(0.001)


async def settle(store):
    """Wait until whatever `store` did so far has been told: what is done after it was."""
    heard = []
    watch = store.watch_data("/settled", lambda: heard.append(1))
    await store.multi([Create("/settled"), Delete("/settled")])
    await eventually(lambda: heard)
    watch.cancel()


class StoreContract:
    """The laws."""

    def test_a_node_holds_data_at_version_zero(self, run):
        """And can be read by its path."""

        async def scenario(store):
            await create(store, "/a", b"x")
            assert await store.get("/a") == Node(b"x", 0)
            assert await store.get("/b") is None

        run(scenario)

    def test_each_set_adds_one_to_the_version(self, run):
        """The version counts changes."""

        async def scenario(store):
            await create(store, "/a", b"x")
            assert await set_data(store, "/a", b"y") == 1
            assert await set_data(store, "/a", b"z", 1) == 2
            assert await store.get("/a") == Node(b"z", 2)

        run(scenario)

    def test_a_set_at_another_version_is_refused(self, run):
        """Compare-and-set: of two who read the same version, one wins."""

        async def scenario(first, second):
            await create(first, "/a")
            assert await set_data(first, "/a", b"first", 0) == 1
            with pytest.raises(BadVersion):
                await set_data(second, "/a", b"second", 0)
            assert await second.get("/a") == Node(b"first", 1)

        run(scenario, clients=2)

    def test_a_node_needs_its_parent(self, run):
        """Paths grow from the root."""

        async def scenario(store):
            with pytest.raises(NoNode):
                await create(store, "/a/b")

        run(scenario)

    def test_a_node_is_created_once(self, run):
        """Of two who create it, one is told that it is there."""

        async def scenario(first, second):
            await create(first, "/a", b"first")
            with pytest.raises(NodeExists):
                await create(second, "/a", b"second")

        run(scenario, clients=2)

    def test_a_node_with_children_is_not_deleted(self, run):
        """Its children first."""

        async def scenario(store):
            await store.ensure("/a/b")
            with pytest.raises(NotEmpty):
                await delete(store, "/a")
            await delete(store, "/a/b")
            await delete(store, "/a")
            assert await store.children("/") == []

        run(scenario)

    def test_what_is_not_there_is_neither_set_nor_deleted_nor_checked(self, run):
        """Each says so."""

        async def scenario(store):
            for operation in (Set("/a", b""), Delete("/a"), Check("/a")):
                with pytest.raises(NoNode):
                    await store.multi([operation])

        run(scenario)

    def test_children_are_listed_by_name_in_order(self, run):
        """Only direct ones."""

        async def scenario(store):
            for path in ("/a/c", "/a/b/x", "/ab"):
                await store.ensure(path)
            assert await store.children("/a") == ["b", "c"]
            assert await store.children("/") == ["a", "ab"]
            assert await store.children("/nothing") == []

        run(scenario)

    def test_a_subtree_holds_the_node_and_all_below(self, run):
        """Not its neighbours, however their names begin."""

        async def scenario(store):
            for path in ("/a/b/c", "/a-b", "/a.b", "/a0", "/ab"):
                await store.ensure(path)
            await set_data(store, "/a/b", b"x")
            assert await store.subtree("/a") == {
                "/a": Node(b"", 0),
                "/a/b": Node(b"x", 1),
                "/a/b/c": Node(b"", 0),
            }
            assert await store.subtree("/nothing") == {}

        run(scenario)

    def test_ensure_makes_what_lacks_and_touches_nothing_else(self, run):
        """Running it again changes nothing."""

        async def scenario(store):
            await create(store, "/a", b"x")
            await store.ensure("/a/b/c")
            await store.ensure("/a/b/c")
            assert await store.get("/a") == Node(b"x", 0)
            assert await store.get("/a/b/c") == Node(b"", 0)

        run(scenario)

    def test_a_multi_does_all_in_order(self, run):
        """Later operations see the earlier ones."""

        async def scenario(store):
            await create(store, "/v")
            results = await store.multi(
                [
                    Check("/v", 0),
                    Create("/a", b"1"),
                    Create("/a/b"),
                    Set("/a", b"2", 0),
                    Set("/a", b"3", 1),
                    Delete("/a/b", 0),
                ]
            )
            assert results == [None, "/a", "/a/b", 1, 2, None]
            assert await store.subtree("/a") == {"/a": Node(b"3", 2)}

        run(scenario)

    def test_a_multi_that_fails_does_nothing(self, run):
        """All or nothing, whatever kind the operations before were of."""

        async def scenario(store):
            await store.ensure("/a/b")
            await create(store, "/s")
            with pytest.raises(BadVersion):
                await store.multi(
                    [
                        Create("/c"),
                        Set("/a", b"x"),
                        Delete("/a/b"),
                        Create("/s/n-", sequential=True),
                        Check("/a", 7),
                    ]
                )
            assert list(await store.subtree("/")) == ["/", "/a", "/a/b", "/s"]
            assert await store.get("/a") == Node(b"", 0)
            assert await store.multi([Create("/s/n-", sequential=True)]) == ["/s/n-0000000000"]

        run(scenario)

    def test_sequential_nodes_are_numbered_by_their_parent(self, run):
        """The numbers grow and are never given again (P17)."""

        async def scenario(first, second):
            await create(first, "/q")
            operation = Create("/q/n-", sequential=True)
            given = []
            for store in (first, second, first):
                given += await store.multi([operation])
                await delete(second, given[-1])
            await create(second, "/q/other")
            given += await second.multi([operation])
            numbers = [int(path.removeprefix("/q/n-")) for path in given]
            assert numbers == sorted(set(numbers))
            assert [len(path) for path in given] == [len("/q/n-") + 10] * 4

        run(scenario, clients=2)

    def test_data_are_bytes_as_they_are(self, run):
        """Of any value, none, and a hundred kilobytes."""

        async def scenario(store):
            for data in (bytes(range(256)), b"", b"x" * 100_000):
                await create(store, "/a", data)
                assert await store.get("/a") == Node(data, 0)
                await delete(store, "/a")

        run(scenario)

    def test_of_many_who_count_together_none_is_lost(self, run):
        """Compare-and-set until it works: every one of them counts once."""

        async def scenario(*stores):
            await create(stores[0], "/n", b"0")

            async def count_once(store):
                while True:
                    node = await store.get("/n")
                    try:
                        await set_data(store, "/n", b"%d" % (int(node.data) + 1), node.version)
                        return
                    except BadVersion:
                        continue

            await asyncio.gather(*(count_once(store) for store in stores for _ in range(5)))
            assert await stores[0].get("/n") == Node(b"15", 15)

        run(scenario, clients=3)

    def test_calls_of_one_client_are_done_in_their_order(self, run):
        """Also where none waits for the one before."""

        async def scenario(store):
            await create(store, "/q")
            operation = Create("/q/n-", sequential=True)
            given = await asyncio.gather(*(store.multi([operation]) for _ in range(20)))
            assert given == sorted(given)

        run(scenario)

    def test_ephemeral_nodes_end_with_their_session(self, run):
        """Persistent ones, and those of other sessions, stay."""

        async def scenario(first, second):
            mine = await first.open_session(LEASE_MS)
            theirs = await second.open_session(LEASE_MS)
            await first.ensure("/ids")
            await first.multi([Create("/ids/1", b"", mine), Create("/ids/p")])
            await second.multi([Create("/ids/2", b"", theirs)])
            assert mine.id != theirs.id
            assert (await second.get("/ids/1")).owner == mine.id
            assert (await second.get("/ids/p")).owner == 0
            await mine.close()
            assert await second.children("/ids") == ["2", "p"]

        run(scenario, clients=2)

    def test_an_ended_session_creates_nothing(self, run):
        """Who was away too long must open another."""

        async def scenario(store):
            old = await store.open_session(LEASE_MS)
            await old.close()
            assert old.expired
            with pytest.raises(SessionExpired):
                await store.multi([Create("/a", b"", old)])
            new = await store.open_session(LEASE_MS)
            assert (old.generation, new.generation) == (1, 2)
            await store.multi([Create("/a", b"", new)])
            assert new.id != old.id

        run(scenario)

    def test_the_end_of_a_session_is_told_once(self, run):
        """To whoever asked to know."""

        async def scenario(store):
            heard = []
            session = await store.open_session(LEASE_MS)
            session.on_expired(lambda: heard.append("end"))
            await session.close()
            await session.close()
            await settle(store)
            assert heard == ["end"]

        run(scenario)

    def test_a_watch_is_told_of_creation_change_and_deletion(self, run):
        """After the change, in a later turn of the loop."""

        async def scenario(store):
            heard = []
            store.watch_data("/a", lambda: heard.append("a"))
            for operation in (Create("/a"), Set("/a", b"x"), Delete("/a")):
                await store.multi([operation])
                await settle(store)
            assert heard == ["a", "a", "a"]

        run(scenario)

    def test_a_watch_of_children_is_told_of_comers_and_goers_only(self, run):
        """Not of changes of their data."""

        async def scenario(store):
            heard = []
            await create(store, "/a")
            store.watch_children("/a", lambda: heard.append("a"))
            for operation in (Create("/a/b"), Set("/a/b", b"x"), Delete("/a/b")):
                await store.multi([operation])
                await settle(store)
            assert heard == ["a", "a"]

        run(scenario)

    def test_the_end_of_a_session_is_a_change_that_watches_see(self, run):
        """So the death of a broker is noticed."""

        async def scenario(store):
            heard = []
            session = await store.open_session(LEASE_MS)
            await store.multi([Create("/ids"), Create("/ids/1", b"", session)])
            await settle(store)
            store.watch_children("/ids", lambda: heard.append("ids"))
            await session.close()
            await settle(store)
            assert heard
            assert await store.children("/ids") == []

        run(scenario)

    def test_a_failed_multi_is_told_to_nobody(self, run):
        """Nothing happened."""

        async def scenario(store):
            heard = []
            store.watch_data("/a", lambda: heard.append("a"))
            with pytest.raises(NoNode):
                await store.multi([Create("/a"), Check("/b")])
            await settle(store)
            assert heard == []

        run(scenario)

    def test_a_cancelled_watch_is_silent(self, run):
        """Also of what had been done already."""

        async def scenario(store):
            heard = []
            watch = store.watch_data("/a", lambda: heard.append("a"))
            await create(store, "/a")
            watch.cancel()
            watch.cancel()
            heard.clear()
            await set_data(store, "/a", b"x")
            await settle(store)
            assert heard == []

        run(scenario)

    def test_a_watch_is_told_of_what_another_client_does(self, run):
        """Each time: it stands until it is cancelled."""

        async def scenario(watching, changing):
            heard = []
            watching.watch_data("/a", lambda: heard.append("a"))
            assert await watching.get("/a") is None
            for operation in (Create("/a"), Set("/a", b"x"), Delete("/a"), Create("/a")):
                heard.clear()
                await changing.multi([operation])
                await eventually(lambda: heard)
                # Whoever is told reads; from then on the next change is told.
                await watching.get("/a")
            assert (await watching.get("/a")).version == 0

        run(scenario, clients=2)

    def test_children_are_watched_before_there_is_a_parent(self, run):
        """The watch hears of its coming and of its children's."""

        async def scenario(watching, changing):
            seen = []

            async def look():
                seen.append(await watching.children("/a/b"))

            tasks = []
            watching.watch_children(
                "/a/b", lambda: tasks.append(asyncio.get_running_loop().create_task(look()))
            )
            await watching.get("/a/b")
            await changing.ensure("/a/b")
            await changing.ensure("/a/b/c")
            await eventually(lambda: ["c"] in seen)
            await delete(changing, "/a/b/c")
            await eventually(lambda: seen[-1] == [])
            await delete(changing, "/a/b")
            await changing.ensure("/a/b/d")
            await eventually(lambda: ["d"] in seen)
            await asyncio.gather(*tasks)

        run(scenario, clients=2)

    def test_the_end_of_anothers_session_is_told(self, run):
        """A child is gone."""

        async def scenario(watching, leaving):
            await create(watching, "/ids")
            session = await leaving.open_session(LEASE_MS)
            heard = []
            watching.watch_children("/ids", lambda: heard.append(1))
            await watching.get("/ids")
            await leaving.multi([Create("/ids/2", b"", session)])
            await eventually(lambda: heard)
            assert await watching.children("/ids") == ["2"]
            heard.clear()
            await session.close()
            await eventually(lambda: heard)
            assert await watching.children("/ids") == []

        run(scenario, clients=2)

    def test_closing_a_client_ends_its_session(self, run):
        """Its nodes are gone as soon as that is done."""

        async def scenario(first, second):
            await second.multi([Create("/2", b"", await second.open_session(LEASE_MS))])
            await second.close()
            assert await first.children("/") == []

        run(scenario, clients=2)

    def test_a_living_session_is_confirmed_again_and_again(self, run):
        """With a time of the system's own monotonic clock that is never ahead."""

        async def scenario(store):
            clock = SystemClock()
            before_ms = clock.monotonic_ms()
            session = await store.open_session(1_000)
            first_ms = session.confirmed_ms
            assert before_ms <= first_ms <= clock.monotonic_ms()
            await eventually(lambda: session.confirmed_ms > first_ms)
            assert session.confirmed_ms <= clock.monotonic_ms()
            assert not session.expired

        run(scenario)

    def test_a_store_goes_on_from_its_own_history_only(self, run):
        """What a broker has seen must be there; a younger mark, and one of elsewhere, are not."""

        async def scenario(store):
            empty = await store.history()
            await create(store, "/a")
            mark = await store.history()
            assert mark != empty
            await set_data(store, "/a", b"x")
            await store.require_history(empty)
            await store.require_history(mark)
            for foreign in (f"{mark}0000", "else:1:x"):
                with pytest.raises(StoreRolledBack):
                    await store.require_history(foreign)

        run(scenario)
