"""`python -m bench [NAME]… [--quick] [--rounds N]`: measure and print a table.

The figures also go to out/bench.json.
"""

import argparse
import compileall
import importlib
import importlib.util
import json
import os
import platform
import sys
import time

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
    "flush_ways",
    "transactions",
    "groups",
    "quotas",
    "security_limits",
    "compaction",
    "tls",
    "acls",
    "slow_requests",
)


def machine() -> dict[str, object]:
    """What the figures were measured on."""
    return {
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "system": platform.platform(),
        "load_before": os.getloadavg()[0],
        "utc": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("names", nargs="*", help=f"some of: {', '.join(MODULES)}")
    parser.add_argument("--quick", action="store_true", help="small sizes: does it run at all")
    parser.add_argument("--rounds", type=int, default=5, help="measured rounds of each side")
    arguments = parser.parse_args()
    unknown = set(arguments.names) - set(MODULES)
    if unknown:
        parser.error(f"no such measurement: {', '.join(sorted(unknown))}")
    scale = Scale(quick=arguments.quick, rounds=2 if arguments.quick else arguments.rounds)
    about = machine()
    # As pip leaves what it installs: a start that compiles its sources is nobody's.
    compileall.compile_dir(ROOT / "src", quiet=1)
    figures: list[Figure] = []
    for name in arguments.names or MODULES:
        if importlib.util.find_spec(f"bench.{name}") is None:
            print(f"-- {name}: not here", flush=True)
            continue
        print(f"-- {name}", flush=True)
        figures += importlib.import_module(f"bench.{name}").measure(scale)
    print(f"\n{about}\n\n{table(figures)}")
    OUT.mkdir(exist_ok=True)
    result = {"machine": about, "quick": scale.quick, "figures": as_json(figures)}
    (OUT / "bench.json").write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
