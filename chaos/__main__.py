"""Breaks a real cluster under real clients and judges what they saw.

`python -m chaos --faults kill,power --cycles 50 --seed 1` prints a table and exits with 1 when
anything was lost, doubled or told differently, or when replicas differ in the end.
"""

import argparse
import functools
import shutil
import signal
import sys
import tempfile
from pathlib import Path

from chaos import disks, hosts
from chaos.commands import missing
from chaos.faults import BY_NAME_ONLY, USUAL, impossible
from chaos.outcome import Plan
from chaos.run import run

STORES = ("sqlite", "zookeeper", "zookeeper3")


def main() -> int:
    """Run as the command line says."""
    parser = argparse.ArgumentParser(prog="python -m chaos", description=__doc__)
    parser.add_argument("--faults", default=",".join(USUAL), help="which, by name")
    parser.add_argument("--cycles", type=int, default=2, help="how often each")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rate", type=int, default=500, help="records per second and producer")
    parser.add_argument("--store", choices=STORES, default="sqlite")
    parser.add_argument("--java", action="store_true", help="a Java producer writes, too")
    parser.add_argument("--keep", action="store_true", help="keep logs and histories")
    chosen = parser.parse_args()
    if reason := missing((*hosts.TOOLS, *disks.TOOLS)):
        print(f"cannot make faults here: {reason}")
        return 2
    for name in set(BY_NAME_ONLY) - set(chosen.faults.split(",")):
        print(f"left out unless it is named: {name}")
    names = []
    for name in chosen.faults.split(","):
        if reason := impossible(name, chosen.store):
            print(f"left out: {reason}")
        else:
            names.append(name)
    folder = Path(tempfile.mkdtemp(prefix="ottla-chaos-"))
    plan = Plan(names, chosen.cycles, chosen.seed, chosen.rate, chosen.store, chosen.java)
    print(f"logs and histories come into {folder}", flush=True)
    # Who is asked to end takes hosts and disks away first.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    outcome = run(plan, folder, functools.partial(print, flush=True))
    print(outcome.table())
    if chosen.keep or outcome.unexpected or not outcome.is_good:
        print(f"logs and histories are in {folder}")
    else:
        shutil.rmtree(folder, ignore_errors=True)
    return 0 if outcome.is_good else 1


if __name__ == "__main__":
    sys.exit(main())
