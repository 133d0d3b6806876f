"""Has records passed on exactly once while brokers and copiers are killed, and counts them.

`python -m chaos.transactions --records 100000 --kills 10` starts three brokers, and for each kind
of copier kills so many brokers, and so many copiers, while records go from one topic to another in
transactions. It prints a table, and exits with 1 when a record was lost or doubled, a transaction
torn, an aborted one seen, or when somebody who read meanwhile was told otherwise.
"""

import argparse
import functools
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from chaos.transactions.copier import KINDS
from chaos.transactions.run import Outcome, Plan, Run
from chaos.transactions.workers import JAVA, available
from rig.kafka_cluster import kafka_cluster
from rig.ottla_cluster import ottla_cluster

_EVERY_KIND = (*KINDS, JAVA)
_say = functools.partial(print, flush=True)


def main() -> int:
    """Run as the command line says."""
    chosen = _parser().parse_args()
    folder = Path(tempfile.mkdtemp(prefix="ottla-copy-"))
    _say(f"logs come into {folder}")
    outcomes = []
    for kind in chosen.copiers.split(","):
        if kind not in _EVERY_KIND:
            raise SystemExit(f"no copier is called {kind!r}; there are {', '.join(_EVERY_KIND)}")
        if reason := available(kind):
            _say(f"left out: {kind}: {reason}")
            continue
        plan = Plan(
            kind,
            chosen.records,
            chosen.kills,
            chosen.seed,
            size=chosen.size,
            pairs=chosen.pairs,
            recovery=chosen.recovery,
        )
        _say(f"-- {kind}")
        clusters = kafka_cluster() if chosen.kafka else ottla_cluster(folder=folder / kind)
        with clusters as cluster:
            outcomes.append(Run(plan, cluster, folder, _say).run())
        _say(table(outcomes[-1:]))
    _say(table(outcomes))
    good = all(outcome.verdict.is_good for outcome in outcomes)
    if good and not chosen.keep:
        shutil.rmtree(folder, ignore_errors=True)
    return 0 if good else 1


def table(outcomes: Sequence[Outcome]) -> str:
    """All runs, a line each."""
    rows = [
        f"{'copier':<13}{'records':>8}{'brokers':>9}{'copiers':>9}{'gave':>6}{'stuck':>7}{'trans-':>8}"
        f"{'given':>7}{'records':>9}{'lost':>6}{'twice':>7}{'torn':>6}{'aborted':>9}{'missing':>9}"
        f"{'differs':>9}{'longest':>9}{'time':>8}",
        f"{'':<13}{'':>8}{'killed':>9}{'killed':>9}{'up':>6}{'':>7}{'actions':>8}{'up':>7}{'hidden':>9}"
        f"{'':>6}{'':>7}{'':>6}{'read':>9}{'':>9}{'':>9}{'pause':>9}",
    ]
    for outcome in outcomes:
        found = outcome.verdict
        rows.append(
            f"{outcome.plan.kind:<13}{found.records:>8}{outcome.brokers_killed:>9}"
            f"{outcome.copiers_killed:>9}{outcome.copiers_gave_up:>6}{outcome.copiers_stuck:>7}{found.transactions:>8}"
            f"{found.given_up:>7}{found.hidden:>9}{found.lost:>6}{found.doubled:>7}"
            f"{found.torn:>6}{found.aborted_read:>9}{found.missing:>9}"
            f"{found.read_differently:>9}{outcome.pause_s:>7.1f} s{outcome.seconds:>6.0f} s"
        )
    return "\n".join(rows)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m chaos.transactions", description=__doc__)
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--kills", type=int, default=10, help="of brokers, and of copiers")
    parser.add_argument("--copiers", default=",".join(_EVERY_KIND), help="kinds, in this order")
    parser.add_argument("--size", type=int, default=100, help="records in a transaction, at most")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--pairs", action="store_true", help="two brokers die each time")
    parser.add_argument(
        "--recovery",
        choices=("rebootstrap", "none"),
        default="rebootstrap",
        help="librdkafka's metadata.recovery.strategy",
    )
    parser.add_argument("--kafka", action="store_true", help="the same with Apache Kafka's brokers")
    parser.add_argument("--keep", action="store_true", help="keep all logs")
    return parser


if __name__ == "__main__":
    sys.exit(main())
