"""A broker inside the test process: ready, torn down, and the first record of a new group.

Each in a fresh process, for only there does a test's first broker start; the import of the
package is told beside it, and the fixture of a pytest run that has the package installed.
"""

import argparse
import asyncio
import atexit
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.figures import AT_MOST, Figure, Scale, spread
from bench.sides import child
from rig.paths import ROOT

_MODULE = "bench.in_process"


def measure(scale: Scale) -> list[Figure]:
    rounds = scale.pick(7, 2)
    runs = [child(_MODULE, "--brokers", 5) for _ in range(rounds)]
    first = [run["ready_ms"][0] for run in runs]
    later = [value for run in runs for value in run["ready_ms"][1:]]
    down = [value for run in runs for value in run["down_ms"]]
    group = [value for run in runs for value in run["group_ms"]]
    own = [value for run in runs for value in run["own_group_ms"]]
    imported = [run["import_ms"] for run in runs]
    installed = _installed()
    tests = [_under_pytest(installed) for _ in range(rounds)]
    return [
        _figure("in-process broker ready, the first of a process", first, 50),
        _figure("in-process broker ready, later ones", later, 50),
        _figure("in-process broker torn down", down, 20),
        _figure("first record in a new group, ottla.client", own, 150),
        # librdkafka waits 50 ms before it connects to the leader, and 100 ms before it asks for
        # offsets, whoever the broker is: its own log tells (debug=cgrp,broker,protocol).
        _figure("first record in a new group, librdkafka", group, 150),
        _figure("import of ottla.testing", imported, None),
        _figure("pytest, installed, no byte code written: the first ottla_broker", tests, 700),
    ]


def _figure(name: str, values: list[float], bound: float | None) -> Figure:
    return Figure(name, statistics.median(values), "ms", AT_MOST, bound, spread(values))


# Prints how long the fixture takes, by pytest's own report of the slowest.
_TEST = "def test_it(ottla_broker):\n    pass\n"
_SLOWEST = re.compile(r"([\d.]+)s setup")


def _installed() -> Path:
    """The package as pip installs it, in a folder of its own."""
    folder = Path(tempfile.mkdtemp(prefix="bench-installed-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    shutil.copytree(ROOT / "src", folder / "src", ignore=shutil.ignore_patterns("*.egg-info"))
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder)
    pip = (sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation")
    subprocess.run([*pip, "--target", "site", "."], cwd=folder, check=True)
    (folder / "test_it.py").write_text(_TEST)
    return folder


def _under_pytest(installed: Path) -> float:
    """The setup of the first test with a broker, in milliseconds."""
    line = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--durations=1"]
    done = subprocess.run(
        [*line, "--durations-min=0", "test_it.py"],
        cwd=installed,
        env={**os.environ, "PYTHONPATH": "site", "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    found = _SLOWEST.search(done.stdout)
    assert found is not None, done.stdout
    return float(found[1]) * 1000


def run(brokers: int) -> dict[str, Any]:
    """Start and stop so many brokers one after another, and use each with librdkafka."""
    began_s = time.perf_counter()
    from ottla.testing import Broker  # noqa: PLC0415  The import is measured.

    result: dict[str, Any] = {"import_ms": _since_ms(began_s)}
    for key in ("ready_ms", "down_ms", "group_ms", "own_group_ms"):
        result[key] = []
    for _ in range(brokers):
        began_s = time.perf_counter()
        broker = Broker()
        broker.start()
        result["ready_ms"].append(_since_ms(began_s))
        result["group_ms"].append(_first_record(broker.bootstrap))
        result["own_group_ms"].append(asyncio.run(_own_first_record(broker.bootstrap)))
        began_s = time.perf_counter()
        broker.stop()
        result["down_ms"].append(_since_ms(began_s))
    return result


def _since_ms(began_s: float) -> float:
    return (time.perf_counter() - began_s) * 1000


def _first_record(bootstrap: str) -> float:
    """From the creation of a consumer to the record it finds, in a group nobody knew."""
    from confluent_kafka import Consumer, Producer  # noqa: PLC0415  Not part of the import above.

    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0, "log_level": 0})
    producer.produce("first", b"record")
    assert producer.flush(10) == 0
    began_s = time.perf_counter()
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "new",
            "auto.offset.reset": "earliest",
            "log_level": 0,
        }
    )
    consumer.subscribe(["first"])
    while True:
        message = consumer.poll(10)
        if message is not None and not message.error():
            break
    took_ms = _since_ms(began_s)
    consumer.close()
    return took_ms


async def _own_first_record(bootstrap: str) -> float:
    """The same with Ottla's own consumer, in another new group."""
    from ottla.client import Consumer, ConsumerOptions  # noqa: PLC0415  As above.

    began_s = time.perf_counter()
    options = ConsumerOptions(group_id="own", auto_offset_reset="earliest")
    async with Consumer(bootstrap, **options) as consumer:
        consumer.subscribe("first")
        while not await consumer.poll(10):
            pass
        return _since_ms(began_s)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--brokers", type=int, default=5)
    print(json.dumps(run(parser.parse_args().brokers)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
