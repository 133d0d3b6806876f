"""The controller's queue: what it repeats, what it puts in order first, and how it ends."""

import asyncio

import pytest

from ottla.base.errors import ErrorCode, OttlaError
from ottla.broker.controller.jobs import Jobs
from ottla.broker.controller.store_access import Deposed
from ottla.coordination.interface.store import SessionExpired, StoreUnavailable


def play(scenario):
    """Run `scenario(jobs, done)`; what happens is noted in `done`."""

    async def main():
        done = []

        async def repair():
            done.append("repair")

        jobs = Jobs(repair, lambda: done.append("deposed"))
        await scenario(jobs, done)
        jobs.stop()

    asyncio.run(asyncio.wait_for(main(), 120))


async def until(condition):
    while not condition():  # noqa: ASYNC110  # Nothing tells of it.
        await asyncio.sleep(0.001)


def job(done, name, *errors):
    """A job that fails in these ways, one after the other, and then is done."""
    left = list(errors)

    async def work():
        done.append(name)
        if left:
            raise left.pop(0)

    return work


def test_a_job_is_repeated_after_the_world_is_in_order_again():
    """What the store did not answer may have been carried out: all is read anew first."""

    async def scenario(jobs, done):
        jobs.once("a", job(done, "a", StoreUnavailable("away"), StoreUnavailable("away")))
        jobs.once("b", job(done, "b"))
        jobs.start()
        await until(lambda: "b" in done)
        assert done == ["a", "repair", "a", "repair", "a", "b"]

    play(scenario)


def test_who_asked_is_told_and_is_not_served_twice():
    """The outcome is not known, which is for the one who asked to settle."""

    async def scenario(jobs, done):
        jobs.start()
        with pytest.raises(StoreUnavailable):
            await jobs.ask(job(done, "asked", StoreUnavailable("away")))
        jobs.once("later", job(done, "later"))
        await until(lambda: "later" in done)
        assert done == ["asked", "repair", "later"]

    play(scenario)


def test_a_refusal_is_an_answer_and_needs_no_repair():
    """A request that cannot be granted leaves nothing in doubt."""

    async def scenario(jobs, done):
        jobs.start()
        with pytest.raises(OttlaError):
            await jobs.ask(job(done, "asked", OttlaError(ErrorCode.INVALID_REQUEST, "no")))
        assert await jobs.ask(job(done, "next")) is None
        assert done == ["asked", "next"]

    play(scenario)


def test_what_is_wanted_already_is_done_once():
    """However often it happens before its turn, and in the order of the first time."""

    async def scenario(jobs, done):
        for name in ("a", "b", "a", "a"):
            jobs.once(name, job(done, name))
        jobs.start()
        await until(lambda: "b" in done)
        jobs.once("a", job(done, "a"))
        await until(lambda: len(done) == 3)
        assert done == ["a", "b", "a"]

    play(scenario)


def test_who_is_deposed_does_nothing_more():
    """Those who wait are told who not to ask."""

    async def scenario(jobs, done):
        jobs.once("a", job(done, "a", Deposed()))
        jobs.once("b", job(done, "b"))
        waiting = asyncio.ensure_future(jobs.ask(job(done, "asked")))
        jobs.start()
        await until(lambda: "deposed" in done)
        jobs.stop()
        with pytest.raises(Deposed):
            await waiting
        assert done == ["a", "deposed"]

    play(scenario)


def test_a_mistake_of_ours_is_followed_by_repair(caplog):
    """The queue goes on: one job that cannot be done must not hold up all others."""

    async def scenario(jobs, done):
        jobs.once("a", job(done, "a", ValueError("ours")))
        jobs.once("b", job(done, "b"))
        jobs.start()
        await until(lambda: "b" in done)
        assert done == ["a", "repair", "b"]

    play(scenario)
    assert "the controller failed at: a" in caplog.text


def test_a_controller_whose_session_has_ended_is_deposed(caplog):
    """Its node in the store went with the session; that is no mistake of the controller's."""

    async def scenario(jobs, done):
        jobs.once("brokers", job(done, "brokers", SessionExpired(7)))
        jobs.once("later", job(done, "later"))
        jobs.start()
        await until(lambda: "deposed" in done)
        assert done == ["brokers", "deposed"]
        assert caplog.messages == []

    play(scenario)
