"""What ZooKeeper adds: servers that go away, sessions that expire, users, its own client."""

import asyncio
import itertools

import pytest
from kazoo.client import KazooClient
from rig.zookeeper import Ensemble

from ottla.coordination.connect import connect
from ottla.coordination.interface.client import StoreAccess
from ottla.coordination.interface.store import (
    Create,
    SessionExpired,
    StoreDenied,
    StoreError,
    StoreUnavailable,
)
from tests.integration.coordination.processes import members
from tests.unit.coordination.contract import PATIENCE_S, eventually
from tests.unit.coordination.writes import create, set_data

_numbers = itertools.count()
# Longer than any server of the tests is away.
LONG_LEASE_MS = 60_000


OWN = StoreAccess(user="ottla", password="secret", protects=True, sensitive=("/a",))


def fresh(ensemble: Ensemble) -> str:
    """The address of an empty store."""
    return f"zookeeper://{ensemble.hosts}/own/{next(_numbers)}"


async def until_done(attempt):
    """Try until the store does it, as brokers do."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            try:
                return await attempt()
            except StoreUnavailable:
                await asyncio.sleep(0.05)


async def until_refused(attempt):
    """Go on until the store is seen to be away."""
    while True:
        await attempt()


def test_its_own_client_reads_the_papers_paths(server):
    """`zkCli get /brokers/ids/1` shows what was written."""

    async def write():
        store = await connect(f"zookeeper://{server.hosts}")
        for path in ("/brokers/ids", "/brokers/topics/flights/partitions/0"):
            await store.ensure(path)
        await create(store, "/brokers/ids/1", b'{"host":"a.example"}')
        await create(store, "/brokers/topics/flights/partitions/0/state", b'{"leader":1}')
        assert (await store.children("/")).count("zookeeper") == 0
        await store.close()

    asyncio.run(write())
    assert '{"host":"a.example"}' in server.run_shell("get", "/brokers/ids/1").splitlines()
    assert "[flights]" in server.run_shell("ls", "/brokers/topics").splitlines()
    state = server.run_shell("get", "/brokers/topics/flights/partitions/0/state")
    assert '{"leader":1}' in state.splitlines()


def test_a_session_outlives_the_restart_of_its_server(server):
    """Ephemeral nodes stay, what was missed is told, and nothing expired."""

    async def main():
        store = await connect(fresh(server))
        session = await store.open_session(LONG_LEASE_MS)
        ended, heard = [], []
        session.on_expired(lambda: ended.append(1))
        await store.multi([Create("/me", b"", session)])
        store.watch_data("/other", lambda: heard.append(1))
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(None, server.servers[0].kill)
        with pytest.raises(StoreUnavailable):
            await until_refused(lambda: store.get("/me"))
        await loop.run_in_executor(None, server.servers[0].start)
        assert (await until_done(lambda: store.get("/me"))).owner == session.id
        # The connection was lost: whoever watches is asked to look.
        await eventually(lambda: heard)
        heard.clear()
        await create(store, "/other")
        await eventually(lambda: heard)
        assert not ended
        assert not session.expired
        await store.close()

    asyncio.run(main())


def test_a_session_ended_by_others_is_told_and_followed_by_another(server):
    """Closed under the same id from elsewhere: the holder hears of it and begins anew."""

    async def main():
        store = await connect(fresh(server))
        old = await store.open_session(LONG_LEASE_MS)
        ended = []
        old.on_expired(lambda: ended.append(1))
        await store.multi([Create("/me", b"", old)])
        client_id = store._connection._client.client_id
        twin = KazooClient(hosts=server.hosts, client_id=client_id)
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(None, twin.start)
        await loop.run_in_executor(None, twin.stop)
        await eventually(lambda: ended)
        assert old.expired
        with pytest.raises(SessionExpired):
            await store.multi([Create("/again", b"", old)])
        assert await until_done(lambda: store.get("/me")) is None
        new = await store.open_session(LONG_LEASE_MS)
        assert (old.generation, new.generation) == (1, 2)
        await store.multi([Create("/me", b"", new)])
        assert (await store.get("/me")).owner == new.id != old.id
        assert ended == [1]
        await store.close()

    asyncio.run(main())


def test_a_successor_ends_a_session_by_its_credential(server):
    """Its nodes go at once, its holder hears of it; a session that has ended is let be."""

    async def main():
        address = fresh(server)
        holder, successor = await connect(address), await connect(address)
        session = await holder.open_session(LONG_LEASE_MS)
        ended = []
        session.on_expired(lambda: ended.append(1))
        await holder.multi([Create("/me", b"", session)])
        await successor.end_session(session.credential)
        assert await successor.get("/me") is None
        await successor.end_session(session.credential)
        await eventually(lambda: ended)
        with pytest.raises(StoreDenied):
            await successor.end_session("rubbish")
        await holder.close()
        await successor.close()

    asyncio.run(main())


def test_a_session_ends_within_twice_what_was_granted(server):
    """ZooKeeper grants what it was asked for, or what its own limits make of it."""

    async def main():
        store = await connect(fresh(server))
        assert (await store.open_session(150)).ends_within_ms == 400
        await store.close()
        store = await connect(fresh(server))
        assert (await store.open_session(LONG_LEASE_MS)).ends_within_ms == 2 * LONG_LEASE_MS
        await store.close()

    asyncio.run(main())


def test_a_session_that_would_end_before_its_holder_thinks_so_is_refused(server):
    """Where maxSessionTimeout is less than what the broker goes by."""

    async def main():
        store = await connect(fresh(server))
        with pytest.raises(StoreDenied, match="maxSessionTimeout"):
            await store.open_session(LONG_LEASE_MS + 1)
        await store.close()

    asyncio.run(main())


def test_an_ensemble_goes_on_without_its_leader(three):
    """Sessions, watches and changes outlive it."""

    async def main():
        address = fresh(three)
        one, other = await connect(address), await connect(address)
        session = await one.open_session(LONG_LEASE_MS)
        await one.multi([Create("/me", b"", session)])
        await create(one, "/n")
        heard = []
        one.watch_data("/n", lambda: heard.append(1))
        await one.get("/n")
        mark = await one.history()
        loop = asyncio.get_running_loop()
        leader = await loop.run_in_executor(None, three.leader)
        await loop.run_in_executor(None, leader.kill)
        # Whether a change without an answer was made, its version tells.
        await until_done(lambda: other.get("/n"))
        await until_done(lambda: set_data(other, "/n", b"x"))
        await eventually(lambda: heard)
        node = await until_done(lambda: one.get("/n"))
        assert node.data == b"x"
        assert (await until_done(lambda: one.get("/me"))).owner == session.id
        assert not session.expired
        await until_done(lambda: one.require_history(mark))
        for store in (one, other):
            await store.close()

    asyncio.run(main())


def test_a_server_that_hangs_confirms_no_session(server):
    """The holder's last confirmation grows old, and is renewed when the server goes on."""

    async def main():
        store = await connect(fresh(server))
        session = await store.open_session(LONG_LEASE_MS)
        # Confirmations are asked for every sixth of the lease; a change is one at once.
        await create(store, "/a")
        server.servers[0].pause()
        before_ms = session.confirmed_ms
        with pytest.raises(StoreUnavailable):
            await create(store, "/b")
        assert session.confirmed_ms == before_ms
        server.servers[0].resume()
        await until_done(lambda: set_data(store, "/a", b"x"))
        assert session.confirmed_ms > before_ms
        await store.close()

    asyncio.run(main())


def test_nodes_are_for_the_user_who_made_them(server):
    """Without name and password, or with others, the store is denied, with what to do."""
    address = fresh(server)

    async def look(access):
        store = await connect(address, access=access)
        try:
            await store.get("/a")
        finally:
            await store.close()

    async def main():
        store = await connect(address, access=OWN)
        await create(store, "/a", b"x")
        await store.close()
        for user, password in (("", ""), ("ottla", "wrong"), ("else", "secret")):
            access = StoreAccess(user=user, password=password, protects=bool(user))
            with pytest.raises(StoreDenied, match=r"coordination\.password"):
                await look(access)
        again = await connect(address, access=OWN)
        assert (await again.get("/a")).data == b"x"
        await again.close()

    asyncio.run(main())


def test_where_nobody_answers_the_error_says_whom_to_look_at():
    """After the time that was given, not for ever."""

    async def main():
        with pytest.raises(StoreUnavailable, match=r"127\.0\.0\.1:1 did not answer"):
            await connect("zookeeper://127.0.0.1:1/x", timeout_ms=300)

    asyncio.run(main())


def test_a_process_that_stands_still_loses_its_session(server):
    """ZooKeeper ends it; the process is told as soon as it goes on, and comes back."""
    with members(fresh(server), "1", "2", lease_ms=1_000) as (first, second):
        second.pause()
        first.wait_for("ids 1")
        second.resume()
        second.wait_for("expired 1")
        first.wait_for("ids 1,2")


def test_the_death_of_a_process_ends_its_session_with_its_lease(server):
    """Its nodes are gone soon after."""
    with members(fresh(server), "1", "2", lease_ms=1_000) as (first, second):
        second.kill()
        first.wait_for("ids 1")


def test_a_closed_store_answers_nobody(server):
    """And closing twice is fine."""

    async def main():
        store = await connect(fresh(server))
        await store.close()
        await store.close()
        with pytest.raises(StoreError):
            await store.get("/a")

    asyncio.run(main())
