"""Memory that stays: a broker while topics, groups, connections and producers come and go.

Several times a second, one of each comes, is used and goes: a topic that is created, written to,
read and deleted; a group that a member joins, commits and leaves, and of which every second one is
deleted; an idempotent producer and a transaction of a new transactional id; a plaintext and a TLS
connection, and one that ends within its handshake. What the broker keeps by intent, it keeps for a
minute here: producers, transactional ids, offsets and segments.

The broker's resident memory and its open descriptors are sampled every five seconds. Both have
levelled off if the straight line through the samples of the second half rises, over that half, by
at most 2 % of the median, at least by 2 MiB and by 5 descriptors. `python -m bench.soak --minutes
60` runs for longer, and writes the samples to a file.
"""

import argparse
import asyncio
import contextlib
import itertools
import json
import os
import ssl
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path

from bench.figures import AT_MOST, Figure, Scale, table
from bench.strangers import frame
from ottla.base.errors import OttlaError
from ottla.client import Admin, Consumer, Producer
from ottla.operations.certificates import make_development_files
from ottla.wire.messages.api_versions import ApiVersionsRequest
from rig.broker import ottla
from rig.nodes import Node
from rig.probe import free_port

_MINUTES = 20
_SAMPLE_S = 5.0
_PAUSE_S = 0.2
_RISE_MAX = 0.02
_RISE_MIN_MIB, _RISE_MIN_DESCRIPTORS = 2.0, 5.0
_MIB = 1 << 20
_STAYS = "soak-stays"
# What a broker keeps for a day or a week by default.
_SHORT = {
    "producer.id.expiration.ms": "60000",
    "producer.id.expiration.check.interval.ms": "5000",
    "transactional.id.expiration.ms": "60000",
    "transaction.remove.expired.transaction.cleanup.interval.ms": "5000",
    "offsets.retention.minutes": "1",
    "offsets.retention.check.interval.ms": "5000",
    "log.retention.ms": "60000",
    "log.retention.check.interval.ms": "5000",
    "log.segment.bytes": "1048576",
    "log.segment.delete.delay.ms": "1000",
    "transaction.state.log.segment.bytes": "1048576",
    "offsets.topic.segment.bytes": "1048576",
    "log.cleaner.backoff.ms": "5000",
}


class Player:
    """Everything that comes and goes, in a process of its own."""

    def __init__(self, port: int, tls_port: int) -> None:
        self._bootstrap = f"127.0.0.1:{port}"
        self._port, self._tls_port = port, tls_port
        self._numbers = itertools.count()
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self._context.check_hostname = False
        self._context.verify_mode = ssl.CERT_NONE
        self.count = 0
        self.errors: list[str] = []

    async def topic(self, admin: Admin) -> None:
        name = f"soak-{next(self._numbers)}"
        await admin.topics.create(name, partitions=4)
        async with Producer(self._bootstrap, linger_ms=0) as producer:
            for number in range(8):
                await producer.send(name, b"value", key=str(number))
            await producer.flush()
        async with Consumer(self._bootstrap, name, auto_offset_reset="earliest") as consumer:
            await consumer.poll(1.0)
        await admin.topics.delete(name)

    async def group(self, admin: Admin) -> None:
        name = f"group-{next(self._numbers)}"
        async with Consumer(
            self._bootstrap, _STAYS, group_id=name, auto_offset_reset="earliest"
        ) as consumer:
            await consumer.poll(2.0)
            await consumer.commit()
        if next(self._numbers) % 2:
            await admin.groups.delete(name)

    async def transaction(self, _admin: Admin) -> None:
        name = f"transaction-{next(self._numbers)}"
        async with Producer(self._bootstrap, transactional_id=name) as producer:
            await producer.begin_transaction()
            await producer.send(_STAYS, b"x" * 1000)
            if next(self._numbers) % 2:
                await producer.commit_transaction()
            else:
                await producer.abort_transaction()

    async def producer(self, _admin: Admin) -> None:
        async with Producer(self._bootstrap, linger_ms=0) as producer:
            await producer.send_and_wait(_STAYS, b"x" * 10_000)

    async def connections(self, _admin: Admin) -> None:
        for port, context in ((self._port, None), (self._tls_port, self._context)):
            reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
            writer.write(frame(ApiVersionsRequest(), 0))
            await reader.readexactly(100)
            writer.close()
        _, writer = await asyncio.open_connection("127.0.0.1", self._tls_port)
        writer.write(b"\x16\x03\x01\x02\x00\x01\x00")
        await asyncio.sleep(0.05)
        writer.close()

    async def again(
        self, one: Callable[[Admin], Awaitable[None]], admin: Admin, ends_s: float
    ) -> None:
        while time.monotonic() < ends_s:
            try:
                await one(admin)
            except (OttlaError, OSError, asyncio.IncompleteReadError) as error:
                self.errors.append(f"{one.__name__}: {error}")
            self.count += 1
            await asyncio.sleep(_PAUSE_S)


async def play(port: int, tls_port: int, seconds: float) -> None:
    player = Player(port, tls_port)
    ends_s = time.monotonic() + seconds
    async with Admin(f"127.0.0.1:{port}") as admin:
        await admin.topics.create(_STAYS, partitions=2)
        kinds = (
            player.topic,
            player.group,
            player.transaction,
            player.producer,
            player.connections,
        )
        await asyncio.gather(*(player.again(one, admin, ends_s) for one in kinds))
    print(json.dumps({"rounds": player.count, "errors": player.errors[:20]}))


def measure(scale: Scale, minutes: float = _MINUTES, file: Path | None = None) -> list[Figure]:
    seconds = 60.0 if scale.quick else minutes * 60
    with tempfile.TemporaryDirectory() as folder:
        files = make_development_files(Path(folder) / "certs", [], "bench", datetime.now(UTC))
        port, tls_port = free_port(), free_port()
        settings = {
            **_SHORT,
            "listeners": f"PLAINTEXT://127.0.0.1:{port},SSL://127.0.0.1:{tls_port}",
            "inter.broker.listener.name": "PLAINTEXT",
            "ssl.keystore.location": str(files.server),
            "log.flush.policy": "os",
        }
        with ottla(settings=settings, port=port) as node:
            samples, played = _sampled(node, tls_port, seconds)
    if file is not None:
        file.write_text("".join(f"{at:.0f} {mib:.2f} {count}\n" for at, mib, count in samples))
    return [
        _figure("resident memory", "MiB", samples, 1, _RISE_MIN_MIB, played),
        _figure("open descriptors", "descriptors", samples, 2, _RISE_MIN_DESCRIPTORS, played),
    ]


Sample = tuple[float, float, float]


def _sampled(node: Node, tls_port: int, seconds: float) -> tuple[list[Sample], str]:
    """Seconds, MiB and descriptors of each sample, and what the player reports."""
    command = [sys.executable, "-m", "bench.soak", "--play", str(node.port), str(tls_port)]
    command += ["--seconds", str(seconds)]
    began_s = time.monotonic()
    samples: list[Sample] = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as player:
        while player.poll() is None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                player.wait(_SAMPLE_S)
            descriptors = len(os.listdir(f"/proc/{node.process.pid}/fd"))
            mib = node.process.rss_bytes() / _MIB
            samples.append((time.monotonic() - began_s, mib, descriptors))
            if len(samples) % 12 == 0:
                print(f"   {samples[-1][0]:.0f} s: {mib:.1f} MiB, {descriptors} open", flush=True)
        assert player.stdout is not None
        return samples, player.stdout.read().strip()


def _figure(
    what: str, unit: str, samples: list[Sample], column: int, least: float, played: str
) -> Figure:
    half = samples[len(samples) // 2 :]
    values = [sample[column] for sample in half]
    slope, _ = statistics.linear_regression([sample[0] for sample in half], values)
    rise, middle = slope * (half[-1][0] - half[0][0]), statistics.median(values)
    bound = max(least, _RISE_MAX * middle)
    note = f"median {middle:,.1f}, min {min(values):,.1f}, max {max(values):,.1f}; {played}"
    name = f"{what}: rise in the last {half[-1][0] - half[0][0]:,.0f} s"
    return Figure(name, rise, unit, AT_MOST, bound, note)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=_MINUTES)
    parser.add_argument("--samples", type=Path, help="a file for the samples")
    parser.add_argument("--play", type=int, nargs=2, metavar="PORT", help=argparse.SUPPRESS)
    parser.add_argument("--seconds", type=float, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.play:
        port, tls_port = chosen.play
        asyncio.run(play(port, tls_port, chosen.seconds))
    else:
        print(table(measure(Scale(), chosen.minutes, chosen.samples)))


if __name__ == "__main__":
    main()
