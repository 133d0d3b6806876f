"""Ready again after kill -9, with 10 GB in 100 partitions written just before."""

import shutil
import statistics
import tempfile
from pathlib import Path

from bench.consume import fill
from bench.figures import AT_MOST, Figure, Scale, spread
from bench.sides import NO_FSYNC, create_topic
from rig.broker import ottla
from rig.probe import serves

_PARTITIONS = 100
_RECORD_BYTES = 100


def measure(scale: Scale) -> list[Figure]:
    records = scale.pick(10_000_000_000, 200_000_000) // _RECORD_BYTES
    home = Path(tempfile.mkdtemp(prefix="bench-restart-"))
    times = []
    try:
        with ottla(settings=NO_FSYNC, folder=home) as node:
            name = create_topic(node, _PARTITIONS)
            written = fill(node, name, records, _PARTITIONS)
            node.process.kill()
        for _ in range(scale.pick(3, 1)):
            with ottla(settings=NO_FSYNC, folder=home) as node:
                assert serves(node.port)
                times.append(node.ready_s)
                print(f"   ready after {node.ready_s:.2f} s", flush=True)
                node.process.kill()
    finally:
        shutil.rmtree(home, ignore_errors=True)
    note = f"{written / 1e9:.1f} GB in {_PARTITIONS} partitions; {spread(times)}"
    return [Figure("restart after kill -9", statistics.median(times), "s", AT_MOST, 5, note)]
