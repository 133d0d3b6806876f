"""A broker that is far away: what it answers takes its time."""

import asyncio
import contextlib
import threading
from collections.abc import Iterator

from rig.probe import free_port

import ottla.testing


@contextlib.contextmanager
def distant_broker(answer_s: float) -> Iterator[tuple[ottla.testing.Broker, str]]:
    """A broker, and the address that clients are given; answers on the way take `answer_s`."""
    port = free_port()
    address = f"127.0.0.1:{port}"
    settings = {"advertised.listeners": f"PLAINTEXT://{address}"}
    with ottla.testing.Broker(settings=settings) as broker, _link(port, broker.port, answer_s):
        yield broker, address


@contextlib.contextmanager
def _link(port: int, to: int, answer_s: float) -> Iterator[None]:
    loop = asyncio.new_event_loop()
    tasks: set[asyncio.Task[None]] = set()

    async def connected(near: asyncio.StreamReader, back: asyncio.StreamWriter) -> None:
        far, there = await asyncio.open_connection("127.0.0.1", to)
        for way in (_carry(near, there, 0.0), _carry(far, back, answer_s)):
            task = loop.create_task(way)
            tasks.add(task)
            task.add_done_callback(tasks.discard)

    async def stop() -> None:
        server.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    server = asyncio.run_coroutine_threadsafe(
        asyncio.start_server(connected, "127.0.0.1", port), loop
    ).result(120)
    try:
        yield
    finally:
        asyncio.run_coroutine_threadsafe(stop(), loop).result(120)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def _carry(source: asyncio.StreamReader, sink: asyncio.StreamWriter, late_s: float) -> None:
    """Pass on all that comes, each piece `late_s` after it came, and then the end."""
    loop = asyncio.get_running_loop()
    pieces: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()

    async def hand_over() -> None:
        while True:
            due_s, piece = await pieces.get()
            await asyncio.sleep(due_s - loop.time())
            if not piece:
                return
            sink.write(piece)

    handing_over = loop.create_task(hand_over())
    try:
        with contextlib.suppress(ConnectionError):
            while piece := await source.read(1 << 16):
                pieces.put_nowait((loop.time() + late_s, piece))
        pieces.put_nowait((loop.time() + late_s, b""))
        await handing_over
    finally:
        handing_over.cancel()
        sink.close()
