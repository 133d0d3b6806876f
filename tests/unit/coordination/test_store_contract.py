"""What every implementation of the store promises; ZooKeeper's semantics, run against each."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from ottla.coordination.memory import MemoryStore, MemoryTree
from ottla.coordination.sqlite import SqliteStore
from ottla.coordination.store import (
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
    create,
    delete,
    set_data,
)


@asynccontextmanager
async def memory(tmp_path, clients):
    tree = MemoryTree()
    stores = [MemoryStore(tree) for _ in range(clients)]
    yield stores
    for store in stores:
        await store.close()


@asynccontextmanager
async def sqlite(tmp_path, clients):
    stores = [await SqliteStore.open(str(tmp_path / "store.db")) for _ in range(clients)]
    yield stores
    for store in stores:
        await store.close()


@pytest.fixture(params=[memory, sqlite], ids=["memory", "sqlite"])
def run(request, tmp_path):
    """Run a scenario with one or more clients of one store."""

    def run_it(scenario, clients=1):
        async def main():
            async with request.param(tmp_path, clients) as stores:
                await scenario(*stores)

        asyncio.run(main())

    return run_it


async def settle():
    """Let callbacks that are due run."""
    for _ in range(3):
        await asyncio.sleep(0)


def test_a_node_holds_data_at_version_zero(run):
    """And can be read by its path."""

    async def scenario(store):
        await create(store, "/a", b"x")
        assert await store.get("/a") == Node(b"x", 0)
        assert await store.get("/b") is None

    run(scenario)


def test_each_set_adds_one_to_the_version(run):
    """The version counts changes."""

    async def scenario(store):
        await create(store, "/a", b"x")
        assert await set_data(store, "/a", b"y") == 1
        assert await set_data(store, "/a", b"z", 1) == 2
        assert await store.get("/a") == Node(b"z", 2)

    run(scenario)


def test_a_set_at_another_version_is_refused(run):
    """Compare-and-set: of two who read the same version, one wins."""

    async def scenario(first, second):
        await create(first, "/a")
        assert await set_data(first, "/a", b"first", 0) == 1
        with pytest.raises(BadVersion):
            await set_data(second, "/a", b"second", 0)
        assert await second.get("/a") == Node(b"first", 1)

    run(scenario, clients=2)


def test_a_node_needs_its_parent(run):
    """Paths grow from the root."""

    async def scenario(store):
        with pytest.raises(NoNode):
            await create(store, "/a/b")

    run(scenario)


def test_a_node_is_created_once(run):
    """Of two who create it, one is told that it is there."""

    async def scenario(first, second):
        await create(first, "/a", b"first")
        with pytest.raises(NodeExists):
            await create(second, "/a", b"second")

    run(scenario, clients=2)


def test_a_node_with_children_is_not_deleted(run):
    """Its children first."""

    async def scenario(store):
        await store.ensure("/a/b")
        with pytest.raises(NotEmpty):
            await delete(store, "/a")
        await delete(store, "/a/b")
        await delete(store, "/a")
        assert await store.children("/") == []

    run(scenario)


def test_what_is_not_there_is_neither_set_nor_deleted_nor_checked(run):
    """Each says so."""

    async def scenario(store):
        for operation in (Set("/a", b""), Delete("/a"), Check("/a")):
            with pytest.raises(NoNode):
                await store.multi([operation])

    run(scenario)


def test_children_are_listed_by_name_in_order(run):
    """Only direct ones."""

    async def scenario(store):
        for path in ("/a/c", "/a/b/x", "/ab"):
            await store.ensure(path)
        assert await store.children("/a") == ["b", "c"]
        assert await store.children("/") == ["a", "ab"]
        assert await store.children("/nothing") == []

    run(scenario)


def test_a_subtree_holds_the_node_and_all_below(run):
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


def test_ensure_makes_what_lacks_and_touches_nothing_else(run):
    """Running it again changes nothing."""

    async def scenario(store):
        await create(store, "/a", b"x")
        await store.ensure("/a/b/c")
        await store.ensure("/a/b/c")
        assert await store.get("/a") == Node(b"x", 0)
        assert await store.get("/a/b/c") == Node(b"", 0)

    run(scenario)


def test_a_multi_does_all_in_order(run):
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


def test_a_multi_that_fails_does_nothing(run):
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


def test_sequential_nodes_are_numbered_by_their_parent(run):
    """The numbers grow and are never given again (P17)."""

    async def scenario(first, second):
        await create(first, "/q")
        operation = Create("/q/n-", sequential=True)
        assert await first.multi([operation]) == ["/q/n-0000000000"]
        assert await second.multi([operation]) == ["/q/n-0000000001"]
        await delete(first, "/q/n-0000000001")
        assert await second.multi([operation]) == ["/q/n-0000000002"]

    run(scenario, clients=2)


def test_ephemeral_nodes_end_with_their_session(run):
    """Persistent ones, and those of other sessions, stay."""

    async def scenario(first, second):
        mine = await first.open_session(1000)
        theirs = await second.open_session(1000)
        await first.ensure("/ids")
        await first.multi([Create("/ids/1", b"", mine), Create("/ids/p")])
        await second.multi([Create("/ids/2", b"", theirs)])
        assert mine.id != theirs.id
        await mine.close()
        assert await second.children("/ids") == ["2", "p"]

    run(scenario, clients=2)


def test_an_ended_session_creates_nothing(run):
    """Who was away too long must open another."""

    async def scenario(store):
        old = await store.open_session(1000)
        await old.close()
        assert old.expired
        with pytest.raises(SessionExpired):
            await store.multi([Create("/a", b"", old)])
        new = await store.open_session(1000)
        assert (old.generation, new.generation) == (1, 2)
        await store.multi([Create("/a", b"", new)])
        assert new.id > old.id

    run(scenario)


def test_the_end_of_a_session_is_told_once(run):
    """To whoever asked to know."""

    async def scenario(store):
        heard = []
        session = await store.open_session(1000)
        session.on_expired(lambda: heard.append("end"))
        await session.close()
        await session.close()
        await settle()
        assert heard == ["end"]

    run(scenario)


def test_a_watch_is_told_of_creation_change_and_deletion(run):
    """After the change, in a later turn of the loop."""

    async def scenario(store):
        heard = []
        store.watch_data("/a", lambda: heard.append("a"))
        for operation in (Create("/a"), Set("/a", b"x"), Delete("/a")):
            await store.multi([operation])
            await settle()
        assert heard == ["a", "a", "a"]

    run(scenario)


def test_a_watch_of_children_is_told_of_comers_and_goers_only(run):
    """Not of changes of their data."""

    async def scenario(store):
        heard = []
        await create(store, "/a")
        store.watch_children("/a", lambda: heard.append("a"))
        for operation in (Create("/a/b"), Set("/a/b", b"x"), Delete("/a/b")):
            await store.multi([operation])
            await settle()
        assert heard == ["a", "a"]

    run(scenario)


def test_the_end_of_a_session_is_a_change_that_watches_see(run):
    """So the death of a broker is noticed."""

    async def scenario(store):
        heard = []
        session = await store.open_session(1000)
        await store.multi([Create("/ids"), Create("/ids/1", b"", session)])
        await settle()
        store.watch_children("/ids", lambda: heard.append("ids"))
        await session.close()
        await settle()
        assert heard == ["ids"]

    run(scenario)


def test_a_failed_multi_is_told_to_nobody(run):
    """Nothing happened."""

    async def scenario(store):
        heard = []
        store.watch_data("/a", lambda: heard.append("a"))
        with pytest.raises(NoNode):
            await store.multi([Create("/a"), Check("/b")])
        await settle()
        assert heard == []

    run(scenario)


def test_a_cancelled_watch_is_silent(run):
    """Also when the change had been made already."""

    async def scenario(store):
        heard = []
        watch = store.watch_data("/a", lambda: heard.append("a"))
        await create(store, "/a")
        watch.cancel()
        watch.cancel()
        await settle()
        assert heard == []

    run(scenario)
