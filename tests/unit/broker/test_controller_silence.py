"""Who is taken for silent, and when: in virtual time."""

import asyncio

from ottla.broker.controller.reachability import Silence
from ottla.metadata.image import BrokerImage
from ottla.testing import run_virtual

PATIENCE_S = 3.0
TWO = BrokerImage(2, {}, None, 1)


def play(scenario, *, is_there):
    """Run `scenario(silence, told)`; `told` has the times at which broker 2 was called silent."""

    async def main():
        loop = asyncio.get_running_loop()
        told = []

        async def reaches(_broker, within_s):
            if not is_there:
                await asyncio.sleep(within_s)
            return is_there

        silence = Silence(reaches, PATIENCE_S, lambda _broker: told.append(loop.time()))
        await scenario(silence, told)
        silence.stop()

    run_virtual(main())


def test_who_neither_answers_nor_is_reached_is_silent_when_patience_ends():
    """It is said once, however often something is sent."""

    async def scenario(silence, told):
        silence.begin(TWO)
        await asyncio.sleep(1.0)
        silence.begin(TWO)
        await asyncio.sleep(20.0)
        silence.begin(TWO)
        await asyncio.sleep(20.0)
        assert told == [PATIENCE_S]

    play(scenario, is_there=False)


def test_who_is_slow_and_can_be_reached_is_not_silent():
    """To open ten thousand logs takes longer than a session."""

    async def scenario(silence, told):
        silence.begin(TWO)
        await asyncio.sleep(60.0)
        assert told == []

    play(scenario, is_there=True)


def test_who_was_heard_is_waited_for_anew():
    """An answer ends a silence, and the next one is counted from its own beginning."""

    async def scenario(silence, told):
        silence.begin(TWO)
        await asyncio.sleep(2.9)
        silence.end(2)
        await asyncio.sleep(10.0)
        assert told == []
        silence.begin(TWO)
        await asyncio.sleep(10.0)
        silence.end(2)
        silence.begin(TWO)
        await asyncio.sleep(10.0)
        assert [round(at, 3) for at in told] == [15.9, 25.9]

    play(scenario, is_there=False)


def test_those_that_are_reached_are_told_from_those_that_are_not():
    """All are tried at once."""

    async def scenario(silence, _told):
        loop = asyncio.get_running_loop()
        began_s = loop.time()
        three = BrokerImage(3, {}, None, 1)
        assert await silence.reached([TWO, three]) == set()
        assert loop.time() - began_s == PATIENCE_S / 2

    play(scenario, is_there=False)
