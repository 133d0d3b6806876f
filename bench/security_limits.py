"""What clients that are not let in cost the others: memory of the broker, and time of a known one.

Idle clients greet and never log in (half of them over TLS), others stall in the middle of a TLS
handshake, others send wrong passwords as fast as they can, all with the default limits, from twenty
addresses of each kind. Beside them, a client that has logged in produces at a steady rate over TLS.
Its time is measured while they come, which takes seconds, and then, while the idle ones are there
and are closed, against its time without them.
"""

import asyncio
import contextlib
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import bench.known_client as known
from bench.figures import AT_MOST, Figure, Scale, spread
from bench.sides import child, create_topic
from ottla.client.admin import Admin
from ottla.operations.certificates import make_development_files
from rig.broker import ottla
from rig.nodes import Node
from rig.probe import free_port

IDLE, STALL, FAIL = 5_000, 200, 100
_SECONDS = 20
_MORE_MIB_MAX = 256
_P99_MAX = 1.2
_MIB = 1 << 20


def measure(scale: Scale) -> list[Figure]:
    counts = [scale.pick(full, full // 10) for full in (IDLE, STALL, FAIL)]
    seconds = scale.pick(_SECONDS, 5)
    with TemporaryDirectory() as folder:
        files = make_development_files(Path(folder) / "certs", [], "nobody", datetime.now(UTC))
        tls_port, plain_port = free_port(), free_port()
        port = free_port()
        settings = {
            "listeners": f"PLAINTEXT://127.0.0.1:{port},SASL_SSL://127.0.0.1:{tls_port},"
            f"SASL_PLAINTEXT://127.0.0.1:{plain_port}",
            "inter.broker.listener.name": "PLAINTEXT",
            "sasl.enabled.mechanisms": "SCRAM-SHA-256",
            "ssl.keystore.location": str(files.server),
            "log.flush.policy": "os",
        }
        with ottla(settings=settings, port=port) as node:
            return _measure(node, tls_port, plain_port, counts, seconds, scale.rounds)


def _measure(
    node: Node, tls_port: int, plain_port: int, counts: list[int], seconds: int, rounds: int
) -> list[Figure]:
    idle, stall, fail = counts
    topic = create_topic(node)
    asyncio.run(_add_user(node))
    control: list[dict[str, Any]] = []
    arriving: list[dict[str, Any]] = []
    attacked: list[dict[str, Any]] = []
    more_mib: list[float] = []
    busy: list[float] = []
    _known(tls_port, topic, 1)
    before_mib = node.process.rss_peak_bytes() / _MIB
    for _ in range(rounds):
        control.append(_known(tls_port, topic, seconds))
        options = (f"--idle={idle}", f"--stall={stall}", f"--fail={fail}")
        with _strangers(tls_port, plain_port, *options) as reports:
            # While they come; then, while they are there and are closed.
            arriving.append(_known(tls_port, topic, 5))
            began_s, used_s = time.monotonic(), node.process.cpu_seconds()
            attacked.append(_known(tls_port, topic, seconds))
            busy.append((node.process.cpu_seconds() - used_s) / (time.monotonic() - began_s))
        more_mib.append(node.process.rss_peak_bytes() / _MIB - before_mib)
        print(f"   control  {control[-1]}\n   arriving {arriving[-1]}", flush=True)
        print(f"   attacked {attacked[-1]}", flush=True)
        print(f"   {more_mib[-1]:.1f} MiB more, busy {busy[-1]:.2f}; {reports[-1]}", flush=True)
        time.sleep(12)  # Until addresses are forgiven.
    p99 = [one["p99_ms"] / other["p99_ms"] for one, other in zip(attacked, control, strict=True)]
    what = f"{idle:,} idle, {stall} stalled, {fail} failing"
    arrival = [
        one["p99_ms"] / other["p99_ms"] for one, other in zip(arriving, control, strict=True)
    ]
    logins = [each["login_ms"] for each in attacked]
    return [
        Figure(f"{what}: memory", max(more_mib), "MiB more", AT_MOST, _MORE_MIB_MAX),
        Figure(
            f"{what}: p99 of a known client",
            statistics.median(p99),
            "× without them",
            AT_MOST,
            _P99_MAX,
            f"ms: {spread([each['p99_ms'] for each in attacked])}; without "
            f"{spread([each['p99_ms'] for each in control])}",
        ),
        Figure(
            f"{what}: p99 while they connect",
            statistics.median(arrival),
            "× without them",
            note=f"ms: {spread([each['p99_ms'] for each in arriving])}",
        ),
        Figure(f"{what}: a new login", statistics.median(logins), "ms", note=spread(logins)),
        Figure(f"{what}: the broker's processor", statistics.median(busy), "of a core"),
    ]


async def _add_user(node: Node) -> None:
    async with Admin(node.bootstrap) as admin:
        await admin.users.set_password(known.USER, known.PASSWORD)


@contextlib.contextmanager
def _strangers(tls_port: int, plain_port: int, *options: str) -> Iterator[list[str]]:
    """Let them work, from a moment ago to the end; what they said is there afterwards."""
    process = subprocess.Popen(
        [sys.executable, "-m", "bench.strangers", str(tls_port), str(plain_port), *options],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    reports: list[str] = []
    try:
        yield reports
    finally:
        output, _ = process.communicate()
        reports += output.splitlines()


def _known(port: int, topic: str, seconds: int) -> dict[str, Any]:
    return child("bench.known_client", port, topic, "--seconds", seconds)
