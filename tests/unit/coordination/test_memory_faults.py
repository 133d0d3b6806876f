"""What the simulated store can do to its clients, on a loop whose time is not the world's."""

import asyncio
import random
import selectors

import pytest

from ottla.coordination.interface.store import Create, Node, SessionExpired, StoreUnavailable
from ottla.coordination.memory.faults import StoreFaults
from ottla.coordination.memory.memory import MemoryStore, MemoryTree
from tests.unit.coordination.writes import create, set_data


class _NoFiles(selectors.SelectSelector):
    """Nothing is ever ready: waiting only moves the time."""

    now_s = 0.0

    def select(self, timeout=None):
        assert timeout is not None, "nothing is left that could happen"
        self.now_s += max(timeout, 0)
        return []


class LoopClock:
    def __init__(self, loop):
        self._loop = loop

    def now_ms(self):
        return self.monotonic_ms()

    def monotonic_ms(self):
        return int(self._loop.time() * 1000)


class _VirtualLoop(asyncio.SelectorEventLoop):
    def __init__(self):
        self.files = _NoFiles()
        super().__init__(self.files)

    def time(self):
        return self.files.now_s


def run(scenario, *, clients=("a", "b"), seed=1, **settings):
    """Run a scenario with faults and clients by their names; gives what it returns."""

    async def main():
        tree = MemoryTree()
        faults = StoreFaults(random.Random(seed), **settings)
        clock = LoopClock(asyncio.get_running_loop())
        stores = [MemoryStore(tree, name=name, faults=faults, clock=clock) for name in clients]
        result = await scenario(faults, *stores)
        faults.restore()
        for store, name in zip(stores, clients, strict=True):
            faults.heal(name)
            faults.resume(name)
            await store.close()
        return result

    with asyncio.Runner(loop_factory=_VirtualLoop) as runner:
        return runner.run(main())


def test_an_answer_is_lost_with_the_change_made_or_not():
    """S15 (b): whoever asked cannot know; reading tells."""

    async def scenario(faults, a, b):
        faults.lose_next_answer("a", applied=True)
        faults.lose_next_answer("a", applied=False)
        for path in ("/made", "/not-made"):
            with pytest.raises(StoreUnavailable):
                await create(a, path)
        assert await a.children("/") == ["made"]

    run(scenario)


def test_answers_are_lost_as_often_as_asked_for():
    """Half of the changes without an answer are made."""

    async def scenario(faults, a, b):
        lost = 0
        for number in range(400):
            try:
                await create(a, f"/{number}")
            except StoreUnavailable:
                lost += 1
        return lost, 400 - len(await b.children("/"))

    lost, never_made = run(scenario, lost_answer_rate=0.5)
    assert 150 < lost < 250
    assert 0.3 * lost < never_made < 0.7 * lost


def test_a_session_ends_on_the_stores_clock_while_its_holder_is_paused():
    """Others see it; the holder learns of it when it goes on, and opens another."""

    async def scenario(faults, a, b):
        session = await a.open_session(3_000)
        ended = []
        session.on_expired(lambda: ended.append(asyncio.get_running_loop().time()))
        await create(a, "/ids")
        await a.multi([Create("/ids/a", b"", session)])
        await asyncio.sleep(10)
        assert await b.children("/ids") == ["a"]
        faults.pause("a")
        await asyncio.sleep(2)
        assert await b.children("/ids") == ["a"]
        await asyncio.sleep(2)
        assert await b.children("/ids") == []
        await asyncio.sleep(5)
        assert not ended
        assert not session.expired
        faults.resume("a")
        await asyncio.sleep(1)
        assert len(ended) == 1
        with pytest.raises(SessionExpired):
            await a.multi([Create("/ids/a", b"", session)])
        assert (await a.open_session(3_000)).generation == 2

    run(scenario)


def test_a_holder_that_has_not_heard_yet_creates_nothing_either():
    """The store knows the sessions, not the clients."""

    async def scenario(faults, a, b):
        session = await a.open_session(1_000)
        session.expire()
        assert not session.expired
        with pytest.raises(SessionExpired):
            await a.multi([Create("/a", b"", session)])

    run(scenario, watch_delay_ms=(1_000, 1_000))


def test_an_outage_ends_no_session():
    """S33: away for a minute; then every lease counts anew, and who asked was told no."""

    async def scenario(faults, a, b):
        session = await a.open_session(3_000)
        await a.multi([Create("/me", b"", session)])
        faults.outage()
        with pytest.raises(StoreUnavailable):
            await a.get("/me")
        confirmed_ms = session.confirmed_ms
        await asyncio.sleep(60)
        assert session.confirmed_ms == confirmed_ms
        faults.restore()
        assert await b.get("/me") == Node(b"", 0, session.id)
        await asyncio.sleep(10)
        assert session.confirmed_ms > confirmed_ms
        assert not session.expired

    run(scenario)


def test_a_client_that_is_cut_off_loses_its_session():
    """And its confirmations stop at once, so that it can act as if it had ended."""

    async def scenario(faults, a, b):
        loop = asyncio.get_running_loop()
        session = await a.open_session(3_000)
        await a.multi([Create("/me", b"", session)])
        await asyncio.sleep(5)
        faults.cut("a")
        cut_ms = loop.time() * 1000
        await asyncio.sleep(4)
        assert session.confirmed_ms <= cut_ms
        assert await b.get("/me") is None
        assert not session.expired
        faults.heal("a")
        await asyncio.sleep(1)
        assert session.expired

    run(scenario)


def test_a_client_that_died_leaves_its_session_to_its_lease():
    """Nobody is told anything in its name."""

    async def scenario(faults, a, b):
        session = await a.open_session(3_000)
        await a.multi([Create("/me", b"", session)])
        a.abandon()
        await asyncio.sleep(2)
        assert await b.get("/me") is not None
        await asyncio.sleep(2)
        assert await b.get("/me") is None
        assert not session.expired

    run(scenario)


def test_watches_are_told_late_and_not_while_paused():
    """Within their delay, or when the client goes on."""

    async def scenario(faults, a, b):
        loop = asyncio.get_running_loop()
        heard = []
        a.watch_data("/n", lambda: heard.append(loop.time()))
        await create(b, "/n")
        made_s = loop.time()
        await asyncio.sleep(1)
        assert heard[0] - made_s == pytest.approx(0.1, abs=0.01)
        faults.pause("a")
        await set_data(b, "/n", b"x")
        await asyncio.sleep(1)
        assert len(heard) == 1
        faults.resume("a")
        await asyncio.sleep(1)
        assert len(heard) == 2

    run(scenario, watch_delay_ms=(100, 100))


def test_one_clients_requests_stay_in_order():
    """However long each takes; different clients' do not."""

    async def scenario(faults, a, b):
        await create(a, "/q")
        operation = Create("/q/n-", sequential=True)
        given = await asyncio.gather(*(a.multi([operation]) for _ in range(50)))
        assert given == sorted(given)

    run(scenario, latency_ms=(0.1, 100))


def test_the_same_seed_gives_the_same_run():
    """Every time of every event."""

    async def scenario(faults, a, b):
        loop = asyncio.get_running_loop()
        events = []
        for store in (a, b):
            store.watch_children("/q", lambda name=store._name: events.append((loop.time(), name)))
        await create(a, "/q")
        faults.lost_answer_rate = 0.2

        async def write(store):
            for _ in range(30):
                try:
                    await store.multi([Create("/q/n-", sequential=True)])
                except StoreUnavailable:
                    events.append((loop.time(), "lost"))

        await asyncio.gather(write(a), write(b))
        await asyncio.sleep(1)
        return events, await a.children("/q")

    first, second = (run(scenario, seed=7) for _ in range(2))
    other = run(scenario, seed=8)
    assert first == second
    assert first != other
