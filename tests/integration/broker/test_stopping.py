"""What a broker that stops still does for its clients, and what it does no more."""

import asyncio
import contextlib
import threading

from ottla.base.clock import SystemClock
from ottla.base.errors import ErrorCode
from ottla.base.settings import BrokerSettings
from ottla.broker.partitions.flush import ThreadWorker
from ottla.broker.process.broker import Broker
from ottla.storage.disk.filesystem import OsFileSystem
from tests.integration.broker.broker_client import (
    Client,
    batch,
    connected,
    produce,
    produced,
    running,
    until,
)


class SlowDisk(ThreadWorker):
    """A thread that begins no job while the disk is busy."""

    def __init__(self):
        super().__init__()
        self.idle = threading.Event()
        self.idle.set()

    def start(self, job, *, aside=False):
        super().start(lambda: (self.idle.wait(), job()), aside=aside)


async def is_refused(port):
    """Whether nothing listens on the port."""
    try:
        client = await Client.connect(port)
    except ConnectionError:
        return True
    client.close()
    return False


def test_a_broker_that_stops_reads_no_more_before_it_answers_what_it_has_read(
    tmp_path, monkeypatch
):
    """A record that came while the last flush ran would be in the log, and never acknowledged."""
    monkeypatch.setattr("ottla.broker.process.registration._PATIENCE_S", 600)

    async def scenario():
        disk, settings = SlowDisk(), {"log.dirs": str(tmp_path)}
        async with connected(settings, filesystem=OsFileSystem(), worker=disk) as (broker, client):
            log = broker.partitions.get("a", 0).log
            other = await Client.connect(broker.port)
            assert produced(await other.call(produce("a", batch(b"0")), 9)).error_code == 0
            disk.idle.clear()
            try:
                client.send(produce("a", batch(b"1")), 9)
                await until(lambda: log.log_end_offset == 2)
                stop = asyncio.ensure_future(broker.stop())
                while not await is_refused(broker.port):  # noqa: ASYNC110  # Nothing tells of it.
                    await asyncio.sleep(0.001)
                other.send(produce("a", batch(b"2")), 9)
                client.send(produce("a", batch(b"3")), 9)
                for _ in range(100):
                    await asyncio.sleep(0.001)
                assert not stop.done()
                assert log.log_end_offset == 2
                disk.idle.set()
                answer = produced(await client.receive(0, 9))
                assert (answer.error_code, answer.base_offset) == (ErrorCode.NONE, 1)
                assert await client.is_closed()
                assert await other.is_closed()
                await stop
            finally:
                disk.idle.set()
        async with running(settings, filesystem=OsFileSystem()) as broker:
            assert broker.partitions.get("a", 0).log_end_offset == 2

    asyncio.run(asyncio.wait_for(scenario(), 60))


def test_a_stop_that_is_cancelled_leaves_no_session(tmp_path):
    """In any turn after its first: the next start would wait for a life that its file shows."""

    async def scenario(folder, turns):
        settings = {"listeners": "PLAINTEXT://127.0.0.1:0", "log.dirs": str(folder)}
        broker = Broker(BrokerSettings(settings), clock=SystemClock(), filesystem=OsFileSystem())
        await broker.start()
        assert list(folder.glob("*.session-*"))
        stop = asyncio.ensure_future(broker.stop())
        for _ in range(turns):
            await asyncio.sleep(0)
        stop.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await stop
        assert not list(folder.glob("*.session-*")), turns

    for turns in range(1, 80, 3):
        asyncio.run(asyncio.wait_for(scenario(tmp_path / str(turns), turns), 60))
