"""Virtual time jumps from timer to timer, and every process keeps its order and its end."""

import asyncio
from random import Random

import pytest

from ottla.testing.simulation.virtual.loop import Deadlock, VirtualLoop, resume, run_virtual
from ottla.testing.simulation.virtual.process import Process


def process(name: str, number: int) -> Process:
    return Process(name, name, number, Random(name))


def test_a_day_takes_no_time() -> None:
    async def day() -> float:
        await asyncio.sleep(86_400)
        return asyncio.get_running_loop().time()

    assert run_virtual(day()) == 86_400


def test_waiting_for_what_never_comes_is_a_deadlock() -> None:
    async def wait_for_ever() -> None:
        await asyncio.get_running_loop().create_future()

    with pytest.raises(Deadlock, match="nothing is ready"):
        run_virtual(wait_for_ever())


def _interleaving(seed: int) -> list[str]:
    """In which order two processes' callbacks of one moment run."""
    order: list[str] = []
    loop = VirtualLoop(seed)

    async def main() -> None:
        for number in range(4):
            for name, owner in (("a", one), ("b", other)):
                loop.call_soon(order.append, f"{name}{number}", context=owner.context)
        await asyncio.sleep(1)

    one, other = process("a", 1), process("b", 2)
    loop.run_until_complete(main())
    loop.close()
    return order


def test_processes_interleave_by_the_seed() -> None:
    assert len({tuple(_interleaving(seed)) for seed in range(20)}) > 5
    assert _interleaving(3) == _interleaving(3)


def test_order_within_a_process_is_kept() -> None:
    """asyncio promises that callbacks run in the order in which they were made."""
    for seed in range(20):
        order = _interleaving(seed)
        assert [entry for entry in order if entry[0] == "a"] == ["a0", "a1", "a2", "a3"]
        assert [entry for entry in order if entry[0] == "b"] == ["b0", "b1", "b2", "b3"]


def test_nothing_of_a_killed_process_runs() -> None:
    """Neither its timers nor its tasks, not even what they would do at last."""
    loop = VirtualLoop()
    done: list[str] = []
    victim = process("a", 1)

    async def work() -> None:
        try:
            await asyncio.sleep(2)
            done.append("slept")
        finally:
            done.append("cleaned up")

    async def main() -> None:
        victim.spawn(loop, work())
        await asyncio.sleep(1)
        victim.kill()
        await asyncio.sleep(5)

    loop.run_until_complete(main())
    assert done == []


def test_paused_process_catches_up_when_it_goes_on() -> None:
    loop = VirtualLoop()
    done: list[tuple[str, float]] = []
    sleeper = process("a", 1)

    async def tick() -> None:
        for number in range(3):
            await asyncio.sleep(1)
            done.append((f"tick {number}", loop.time()))

    async def main() -> None:
        sleeper.spawn(loop, tick())
        await asyncio.sleep(1.5)
        sleeper.is_paused = True
        await asyncio.sleep(8.5)
        resume(loop, sleeper)
        await asyncio.sleep(5)

    loop.run_until_complete(main())
    assert done == [("tick 0", 1.0), ("tick 1", 10.0), ("tick 2", 11.0)]


def test_blocking_call_takes_virtual_time_and_no_thread() -> None:
    loop = VirtualLoop()
    caller = process("a", 1)
    caller.blocking_s = (0.5, 0.5)

    async def call() -> tuple[str, float]:
        found = await loop.run_in_executor(None, lambda: "result")
        return found, loop.time()

    async def main() -> tuple[str, float]:
        found: tuple[str, float] = await caller.spawn(loop, call())
        return found

    assert loop.run_until_complete(main()) == ("result", 0.5)
