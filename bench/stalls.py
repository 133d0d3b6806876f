"""How long the broker's event loop is held by work that was once done in one go.

Each case runs in a process of its own, under the loop's own watch (`broker.runtime.loop_watch`),
which counts the times of 20 ms and more: the first read of a segment with a large index; a roll and
a checkpoint of a log with 100,000 producers; the end of the move of such a log to another
directory; Metadata of 250,000 names; and 200 clients that do TLS handshakes one after another.

For the last, a client that has logged in produces at a steady rate over TLS, first without them.
They and the handshakes use both cores, so its p99 has no bound here. `bench security_limits` has
one, for handshakes that stall.
"""

import argparse
import asyncio
import contextlib
import json
import logging
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import uvloop
from crc32c import crc32c

import bench.known_client as known
from bench.figures import AT_MOST, Figure, Scale, spread
from bench.sides import child
from ottla.base.ids import TopicPartition
from ottla.base.settings import BrokerSettings
from ottla.broker.process.broker import Broker
from ottla.broker.process.main import warm_up
from ottla.broker.runtime.loop_watch import STALL_MS, LoopWatch
from ottla.client import Admin
from ottla.operations.certificates import make_development_files
from ottla.storage.disk.filesystem import OsFileSystem
from ottla.storage.log.log import Log
from ottla.storage.log.open_log import open_log
from ottla.storage.segment.config import LogConfig
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from rig.frames import batch
from rig.wire_client import WireClient

_ENTRIES = 262_144  # Of a segment of 1 GiB, with an index entry per 4 KiB.
_PRODUCERS = 100_000
_NAMES = 250_000
_BUSY = 200
_SECONDS = 8
_NAME = TopicPartition("stalls", 0)


def measure(scale: Scale) -> list[Figure]:
    figures = []
    for case in CASES:
        rounds = [child("bench.stalls", case) for _ in range(scale.rounds)]
        print(f"   {case}: {rounds}", flush=True)
        longest = [one["longest_ms"] for one in rounds]
        name = f"the loop was held: {case}"
        figures.append(
            Figure(name, max(longest), "ms", AT_MOST, STALL_MS, f"of {len(rounds)}; {rounds[-1]}")
        )
    p99 = [(one["without"]["p99_ms"], one["with"]["p99_ms"]) for one in rounds]
    ratios = sorted(after / before for before, after in p99)
    what = f"p99 of a known client under {_BUSY} TLS handshakes at a time"
    note = f"ms: {spread([after for _, after in p99])}; without {spread([one for one, _ in p99])}"
    middle = ratios[len(ratios) // 2]
    return [*figures, Figure(what, middle, "× without them", note=note)]


@contextlib.asynccontextmanager
async def _watched(found: dict[str, Any]) -> AsyncIterator[LoopWatch]:
    """Watch the loop; in the end `found` has the counts."""
    watch = LoopWatch(asyncio.get_running_loop())
    await asyncio.sleep(0.1)
    watch.start(alarm=True)
    await asyncio.sleep(0.1)
    yield watch
    await asyncio.sleep(0.1)
    watch.stop()
    found["longest_ms"], found["stalls"] = watch.longest_ms, watch.stalls
    found["longest_wait_ms"], found["waits"] = watch.longest_wait_ms, watch.waits


@contextlib.asynccontextmanager
async def _broker(folder: Path, **settings: str) -> AsyncIterator[Broker]:
    chosen = {
        "listeners": "PLAINTEXT://127.0.0.1:0",
        "log.dirs": f"{folder}/a,{folder}/b",
        "auto.create.topics.enable": "false",
        "log.flush.policy": "os",
        **{name.replace("_", "."): value for name, value in settings.items()},
    }
    broker = Broker(BrokerSettings(chosen))
    await broker.start()
    warm_up(broker)
    try:
        yield broker
    finally:
        await broker.stop()


def _batch(data: bytes, offset: int, producer_id: int) -> bytes:
    """The batch at another offset and time and of another producer, with its checksum."""
    made = bytearray(data)
    made[:8] = offset.to_bytes(8, "big")
    made[35:43] = (int.from_bytes(made[27:35], "big") + offset).to_bytes(8, "big")
    made[43:51] = producer_id.to_bytes(8, "big", signed=True)
    made[51:53], made[53:57] = bytes(2), bytes(4)
    made[17:21] = crc32c(memoryview(made)[21:]).to_bytes(4, "big")
    return bytes(made)


def _fill(log: Log, batches: int, *, producers: bool) -> None:
    """Append batches of one record each; each of a producer of its own, if there are any."""
    now_ms = int(time.time() * 1000)
    data = batch(100, 20, now_ms).data
    for start in range(0, batches, 1000):
        part = range(start, min(start + 1000, batches))
        made = [_batch(data, log.log_end_offset + n - start, n + 1) for n in part]
        log.append_as_follower(b"".join(made), now_ms)
        if not producers:
            log.producers.entries.clear()


async def large_index(folder: Path, found: dict[str, Any]) -> None:
    config = LogConfig(index_interval_bytes=1, segment_bytes=1 << 30)
    filesystem = OsFileSystem()

    def opened() -> Log:
        return open_log(filesystem, f"{folder}/log-0", _NAME, config, clean=True, now_ms=0)

    log = opened()
    _fill(log, _ENTRIES, producers=False)
    log.roll(0)
    _fill(log, 1, producers=False)
    log.close(clean=True)
    log = opened()
    async with _watched(found):
        log.read(_ENTRIES // 2, 1 << 20, max_offset=_ENTRIES)


async def many_producers(folder: Path, found: dict[str, Any]) -> None:
    log = open_log(OsFileSystem(), f"{folder}/log-0", _NAME, LogConfig(), now_ms=0)
    _fill(log, _PRODUCERS, producers=True)
    async with _watched(found):
        job = log.prepare_flush(checkpoint=True)
        await asyncio.get_running_loop().run_in_executor(None, job.run)
        log.on_flushed(job, 0)
        log.roll(0)


async def end_of_move(folder: Path, found: dict[str, Any]) -> None:
    async with _broker(folder) as broker:
        async with Admin(f"127.0.0.1:{broker.port}") as admin:
            await admin.topics.create(_NAME.topic, 1)
        partition = broker.parts.replication.partitions.find(*_NAME)
        assert partition is not None
        _fill(partition.log, _PRODUCERS, producers=True)
        home = partition.log.folder.rpartition("/")[0]
        target = f"{folder}/{'b' if home.endswith('/a') else 'a'}"
        async with _watched(found):
            broker.parts.replication.moves.move(*_NAME, target)
            while not partition.log.folder.startswith(target):  # noqa: ASYNC110  # Nothing says so.
                await asyncio.sleep(0.01)


async def many_names(folder: Path, found: dict[str, Any]) -> None:
    async with _broker(folder) as broker:
        # The codec of such requests is compiled when the first one comes.
        await _ask_for(1_000, broker.port)
        async with _watched(found):
            await _ask_for(_NAMES - 10, broker.port)


async def tls_handshakes(folder: Path, found: dict[str, Any]) -> None:
    files = make_development_files(folder / "certs", [], "bench", datetime.now(UTC))
    secure = {
        "listeners": "PLAINTEXT://127.0.0.1:0,SASL_SSL://127.0.0.1:0",
        "inter_broker_listener_name": "PLAINTEXT",
        "sasl_enabled_mechanisms": "SCRAM-SHA-256",
        "ssl_keystore_location": str(files.server),
        # Strangers that fail are slowed down; these are to be served as fast as they come.
        "max_failed_authentication_rate": "1000000",
    }
    async with _broker(folder, **secure) as broker:
        async with Admin(f"127.0.0.1:{broker.port}") as admin:
            await admin.topics.create(_NAME.topic, 1)
            await admin.users.set_password(known.USER, known.PASSWORD)
        (port,) = [each.port for each in broker.serving.listeners.open if each.name == "SASL_SSL"]
        await _known(port, 1)
        async with _watched(found):
            found["without"] = await _known(port, _SECONDS)
            strangers = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "bench.strangers", str(port), str(broker.port)),
                f"--shake={_BUSY}",
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
            )
            await asyncio.sleep(2)
            found["with"] = await _known(port, _SECONDS)
            output, _ = await strangers.communicate(b"")
            found["strangers"] = json.loads(output.splitlines()[-1])


async def _known(port: int, seconds: int) -> Any:
    return await _run("bench.known_client", port, _NAME.topic, "--seconds", seconds)


async def _ask_for(names: int, port: int) -> Any:
    return await _run("bench.stalls", "ask", "--port", port, "--names", names)


async def _run(module: str, *arguments: object) -> Any:
    """Run a program beside the loop; return what its last line of output says."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", module, *map(str, arguments)), stdout=subprocess.PIPE
    )
    output, _ = await process.communicate()
    return json.loads(output.splitlines()[-1])


def _ask(port: int, names: int) -> None:
    topics = [MetadataRequestTopic(name=f"unknown-{index}") for index in range(names)]
    with WireClient(port) as client:
        asked = MetadataRequest(topics=topics, allow_auto_topic_creation=False)
        print(json.dumps(len(client.call(asked, 12).topics)))


Case = Callable[[Path, dict[str, Any]], Coroutine[Any, Any, None]]
CASES: dict[str, Case] = {
    "first read of a large index": large_index,
    "snapshots of 100,000 producers": many_producers,
    "end of a move": end_of_move,
    "Metadata of 250,000 names": many_names,
    "TLS handshakes": tls_handshakes,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("case", choices=[*CASES, "ask"])
    parser.add_argument("--port", type=int)
    parser.add_argument("--names", type=int)
    chosen = parser.parse_args()
    if chosen.case == "ask":
        _ask(chosen.port, chosen.names)
        return
    logging.basicConfig(level=logging.INFO)
    folder = Path(tempfile.mkdtemp(prefix="bench-stalls-"))
    found: dict[str, Any] = {}
    try:
        uvloop.run(CASES[chosen.case](folder, found))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
