"""Simulated connections do what TCP does: order, windows, resets, and silence where it is cut."""

import asyncio
from random import Random
from typing import Any

import pytest

from ottla.testing.simulation.network.network import Network
from ottla.testing.simulation.virtual.loop import VirtualLoop
from ottla.testing.simulation.virtual.process import Process


class Ear(asyncio.Protocol):
    """Keeps what it hears."""

    def __init__(self, *, echoes: bool = False) -> None:
        self.heard = b""
        self.parts = 0
        self.lost: list[Exception | None] = []
        self.echoes = echoes
        self.paused = False

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.heard += data
        self.parts += 1
        if self.echoes:
            self.transport.write(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost.append(exc)

    def pause_writing(self) -> None:
        self.paused = True

    def resume_writing(self) -> None:
        self.paused = False


class Stage:
    """Two hosts, `a` listening on port 1, and `b`."""

    def __init__(self, seed: int = 1) -> None:
        self.loop = VirtualLoop(seed)
        self.network = Network(self.loop, seed)
        self.a = Process("a", "a", 1, Random(1))
        self.b = Process("b", "b", 2, Random(2))
        self.accepted: list[Ear] = []

    async def listen(self, *, echoes: bool = False) -> None:
        def accept() -> Ear:
            self.accepted.append(Ear(echoes=echoes))
            return self.accepted[-1]

        async def serve() -> None:
            address = self.loop.bind("a", 1)
            await self.loop.create_server(accept, sock=address)

        await self.a.spawn(self.loop, serve())

    async def connect(self) -> Ear:
        async def open_one() -> Ear:
            _, ear = await self.loop.create_connection(Ear, "a", 1)
            assert isinstance(ear, Ear)
            return ear

        ear: Ear = await self.b.spawn(self.loop, open_one())
        return ear

    def run(self, story: Any) -> None:
        self.loop.run_until_complete(story)
        self.loop.close()


def test_bytes_come_in_their_order_and_back() -> None:
    stage = Stage()
    stage.network.fragmentation = 0.5

    async def story() -> None:
        await stage.listen(echoes=True)
        ear = await stage.connect()
        for number in range(50):
            ear.transport.write(b"%d," % number)
        await asyncio.sleep(1)
        assert ear.heard == b"".join(b"%d," % number for number in range(50))
        assert stage.accepted[0].parts > 50

    stage.run(story())


def test_nobody_listening_refuses_and_a_dead_host_is_silent() -> None:
    stage = Stage()

    async def story() -> None:
        with pytest.raises(ConnectionRefusedError):
            await stage.connect()
        stage.network.switch_off("a")
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(60):
                await stage.connect()

    stage.run(story())


def test_what_a_cut_swallows_arrives_after_it() -> None:
    """One way only: what comes the other way still arrives."""
    stage = Stage()

    async def story() -> None:
        await stage.listen()
        ear = await stage.connect()
        await asyncio.sleep(1)
        link = stage.network.link("b", "a")
        link.cut()
        ear.transport.write(b"late")
        stage.accepted[0].transport.write(b"heard")
        await asyncio.sleep(30)
        assert (stage.accepted[0].heard, ear.heard) == (b"", b"heard")
        link.heal()
        ear.transport.write(b"r")
        await asyncio.sleep(1)
        assert stage.accepted[0].heard == b"later"

    stage.run(story())


def test_old_connection_is_overtaken_by_a_new_one() -> None:
    """Bytes of a stalled connection arrive after those of one opened later."""
    stage = Stage()

    async def story() -> None:
        await stage.listen()
        first = await stage.connect()
        first.transport.stall()
        first.transport.write(b"old")
        second = await stage.connect()
        second.transport.write(b"new")
        await asyncio.sleep(1)
        assert [ear.heard for ear in stage.accepted] == [b"", b"new"]
        first.transport.release()
        await asyncio.sleep(1)
        assert [ear.heard for ear in stage.accepted] == [b"old", b"new"]

    stage.run(story())


def test_reader_that_does_not_read_stops_the_writer() -> None:
    stage = Stage()

    async def story() -> None:
        await stage.listen()
        ear = await stage.connect()
        await asyncio.sleep(1)
        reader = stage.accepted[0]
        reader.transport.pause_reading()
        ear.transport.write(bytes(1 << 20))
        await asyncio.sleep(1)
        assert ear.paused
        assert reader.heard == b""
        reader.transport.resume_reading()
        await asyncio.sleep(5)
        assert not ear.paused
        assert len(reader.heard) == 1 << 20

    stage.run(story())


def test_closing_sends_what_was_written_first() -> None:
    stage = Stage()

    async def story() -> None:
        await stage.listen()
        ear = await stage.connect()
        ear.transport.write(bytes(600_000))
        ear.transport.close()
        await asyncio.sleep(5)
        assert len(stage.accepted[0].heard) == 600_000
        assert stage.accepted[0].lost == [None]
        assert ear.lost == [None]

    stage.run(story())


def test_killed_process_closes_its_connections_and_a_lost_host_does_not() -> None:
    stage = Stage()

    async def story() -> None:
        await stage.listen()
        ear = await stage.connect()
        await asyncio.sleep(1)
        stage.a.kill()
        stage.network.end_process(stage.a)
        await asyncio.sleep(1)
        assert ear.lost == [None]

        stage.a = Process("a", "a", 3, Random(3))
        await stage.listen()
        other = await stage.connect()
        stage.a.kill()
        stage.network.switch_off("a")
        await asyncio.sleep(60)
        assert other.lost == []
        stage.network.switch_on("a")
        other.transport.write(b"are you there?")
        await asyncio.sleep(1)
        assert [type(error) for error in other.lost] == [ConnectionResetError]

    stage.run(story())
