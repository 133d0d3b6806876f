"""`python -m bench [NAME]… [--quick] [--rounds N] [--page]`: measure and print a table.

The figures also go to out/bench.json, and with `--page` to docs/performance.md.
"""

import argparse
import compileall
import importlib
import importlib.util
import json
import os
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable

from bench import page
from bench.figures import Figure, Scale, as_json, table
from rig.paths import OUT, ROOT

MODULES = (
    "codec",
    "produce",
    "produce_clients",
    "cores",
    "consume",
    "latency",
    "cold_start",
    "in_process",
    "restart",
    "client",
    "lake",
    "lake_changelog",
    "lake_stream",
    "lake_kib",
    "cluster_start",
    "cluster_produce",
    "failover",
    "controller_failover",
    "idle_isr",
    "thousand_partitions",
    "many_partitions",
    "ten_thousand",
    "flush_ways",
    "loops",
    "transactions",
    "groups",
    "quotas",
    "security_limits",
    "compaction",
    "tls",
    "acls",
    "metrics",
    "slow_requests",
    "stalls",
)

# Measured only if named: it takes twenty minutes.
LONG = ("soak",)

_LOOPS = 2_000_000


def _loop() -> None:
    for _ in range(_LOOPS):
        pass


def _seconds(act: Callable[[], object]) -> float:
    began_s = time.perf_counter()
    act()
    return time.perf_counter() - began_s


def _fsync_s() -> float:
    """Median time to flush 4 KiB at the end of a growing file, where brokers keep their logs."""
    with tempfile.TemporaryFile() as file:
        times = []
        for _ in range(50):
            file.write(bytes(4096))
            file.flush()
            times.append(_seconds(lambda: os.fdatasync(file.fileno())))
    return statistics.median(times)


def machine() -> dict[str, object]:
    """What the figures were measured on."""
    return {
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "system": platform.platform(),
        "loop_per_s": _LOOPS / _seconds(_loop),
        "fsync_ms": _fsync_s() * 1000,
        "load_before": os.getloadavg()[0],
        "utc": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("names", nargs="*", help=f"some of: {', '.join((*MODULES, *LONG))}")
    parser.add_argument("--quick", action="store_true", help="small sizes: does it run at all")
    parser.add_argument("--rounds", type=int, default=5, help="measured rounds of each side")
    parser.add_argument("--page", action="store_true", help="write docs/performance.md as well")
    arguments = parser.parse_args()
    unknown = set(arguments.names) - {*MODULES, *LONG}
    if unknown:
        parser.error(f"no such measurement: {', '.join(sorted(unknown))}")
    scale = Scale(quick=arguments.quick, rounds=2 if arguments.quick else arguments.rounds)
    about = machine()
    # As pip leaves what it installs: a start that compiles its sources is nobody's.
    compileall.compile_dir(ROOT / "src", quiet=1)
    print(about, flush=True)
    measured: dict[str, list[Figure]] = {}
    for name in arguments.names or MODULES:
        if importlib.util.find_spec(f"bench.{name}") is None:
            print(f"-- {name}: not here", flush=True)
            continue
        print(f"-- {name}", flush=True)
        measured[name] = importlib.import_module(f"bench.{name}").measure(scale)
    figures = [figure for each in measured.values() for figure in each]
    print(f"\n{about}\n\n{table(figures)}")
    if arguments.page:
        page.write(measured, about)
    OUT.mkdir(exist_ok=True)
    result = {"machine": about, "quick": scale.quick, "figures": as_json(figures)}
    (OUT / "bench.json").write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
