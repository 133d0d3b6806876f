"""Breaks a real cluster under real clients and judges what they saw.

`python -m chaos --faults kill,power --cycles 50 --seed 1` prints a table and exits with 1 when
anything was lost, doubled or told differently, or when replicas differ in the end. Each run is
noted in `out/chaos.jsonl`; `python -m chaos --totals` prints what all of them showed.
"""

import argparse
import functools
import shutil
import signal
import sys
import tempfile
from pathlib import Path

from chaos import disks, hosts, totals
from chaos.commands import missing
from chaos.faults import BY_NAME_ONLY, FAULTS, USUAL, impossible
from chaos.outcome import Outcome, Plan
from chaos.run import run

STORES = ("sqlite", "zookeeper", "zookeeper3")


def main() -> int:
    """Run as the command line says."""
    chosen = _parser().parse_args()
    if chosen.totals:
        print(totals.table() if totals.FILE.exists() else f"no runs are noted in {totals.FILE}")
        return 0
    if reason := missing((*hosts.TOOLS, *disks.TOOLS)):
        print(f"cannot make faults here: {reason}")
        return 2
    names = _possible(chosen.faults.split(","), chosen.store, chosen.flush, is_secure=chosen.secure)
    plan = Plan(
        names,
        chosen.cycles,
        chosen.seed,
        chosen.rate,
        store=chosen.store,
        tick_ms=chosen.tick_ms,
        writers_wanted=chosen.writers,
        java=chosen.java,
        flush=chosen.flush,
        min_isr=chosen.min_isr,
        at_most_s=chosen.minutes * 60,
        is_secure=chosen.secure,
    )
    # Who is asked to end takes hosts and disks away first.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    folder = Path(tempfile.mkdtemp(prefix="ottla-chaos-"))
    print(f"logs and histories come into {folder}", flush=True)
    outcome = _run(plan, folder)
    print(outcome.table())
    if chosen.keep or outcome.is_odd or not outcome.is_good:
        print(f"logs and histories are in {folder}")
    else:
        shutil.rmtree(folder, ignore_errors=True)
    return 0 if outcome.is_good else 1


def _run(plan: Plan, folder: Path) -> Outcome:
    """One run, noted however it ends, unless there was nothing to break."""
    outcome = Outcome(plan)
    failure: str | None = None
    try:
        run(plan, folder, functools.partial(print, flush=True), outcome)
    except BaseException as error:
        failure = f"{type(error).__name__}: {error}"
        raise
    finally:
        if outcome.has_begun:
            totals.note(outcome, failure)
    return outcome


def _possible(wanted: list[str], store: str, flush: str, *, is_secure: bool) -> list[str]:
    """Those that can be made here; says which are left out, and why."""
    for name in set(BY_NAME_ONLY) - set(wanted):
        print(f"left out unless it is named: {name}")
    names = []
    for name in wanted:
        if name not in FAULTS:
            raise SystemExit(f"no fault is called {name!r}; there are {', '.join(FAULTS)}")
        if reason := impossible(name, store, flush, is_secure=is_secure):
            print(f"left out: {reason}")
        else:
            names.append(name)
    return names


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m chaos", description=__doc__)
    parser.add_argument("--faults", default=",".join(USUAL), help="by name, in this order")
    parser.add_argument("--cycles", type=int, default=2, help="how often all of them")
    parser.add_argument(
        "--minutes", type=float, default=float("inf"), help="begin no faults after this time"
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rate", type=int, default=500, help="records per second and producer")
    parser.add_argument("--writers", type=int, default=2, help="librdkafka's, beside two others")
    parser.add_argument("--store", choices=STORES, default="sqlite")
    parser.add_argument(
        "--tick-ms", type=int, default=2000, help="ZooKeeper's tickTime; sessions last two or more"
    )
    parser.add_argument("--java", action="store_true", help="a Java producer writes, too")
    parser.add_argument("--flush", choices=("group", "os"), default="group")
    parser.add_argument("--min-isr", type=int, choices=(1, 2), default=2)
    parser.add_argument("--secure", action="store_true", help="TLS, logins, ACLs that change")
    parser.add_argument("--keep", action="store_true", help="keep logs and histories")
    parser.add_argument("--totals", action="store_true", help="what all runs so far showed")
    return parser


if __name__ == "__main__":
    sys.exit(main())
