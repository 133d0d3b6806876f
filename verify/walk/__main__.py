"""`python -m verify.walk`: walk, and print what was found."""

import argparse
import sys
import time
from collections import Counter

from verify.walk import profile
from verify.walk.mutants import MUTANTS
from verify.walk.trace import trace
from verify.walk.violation import Violation
from verify.walk.walk import Draw, ReplicaWalk
from verify.walk.world import SHIPPED, Build

RUN_STEPS = 1500
# Each so many runs ends with the faults healed.
HEAL_RUNS = 4


def walk(
    build: Build, seed: int, steps: int, seen: Counter[str], draw: Draw = profile.draw
) -> tuple[int, int, str | None]:
    """Take `steps` steps in runs of their own seeds: (steps, last seed, violation if any)."""
    taken = 0
    while True:
        run = ReplicaWalk(seed, build, draw=draw)
        try:
            run.run(min(RUN_STEPS, steps - taken))
            if seed % HEAL_RUNS == 0:
                run.heal()
        except Violation as violation:
            return taken + run.taken, seed, f"step {run.taken}: {violation}"
        seen.update(run.world.seen)
        seen["committed"] += len(run.world.committed.records)
        taken += run.taken
        if taken >= steps:
            return taken, seed, None
        seed += 1


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m verify.walk", description=__doc__)
    parser.add_argument("--steps", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--mutant", choices=[*MUTANTS, "all"])
    parser.add_argument("--trace", type=int, metavar="LINES", help="tell the end of --seed's run")
    parser.add_argument("--idle", action="store_true", help="worlds with idle times")
    options = parser.parse_args()
    draw = profile.draw_idle if options.idle else profile.draw
    if options.trace:
        build = MUTANTS.get(options.mutant, SHIPPED)
        print("\n".join(trace(options.seed, RUN_STEPS, build, draw)[-options.trace :]))
        return 0
    names = [options.mutant]
    if options.mutant == "all":
        names = list(MUTANTS)
    failed = False
    for name in names:
        build = MUTANTS[name] if name else SHIPPED
        seen: Counter[str] = Counter()
        begun = time.process_time()
        taken, seed, violation = walk(build, options.seed, options.steps, seen, draw)
        cpu = time.process_time() - begun
        outcome = f"VIOLATION at seed {seed}, {violation}" if violation else "no violation"
        print(f"{name or 'shipped':28} {taken:>10} steps {taken / cpu:>9.0f} steps/s  {outcome}")
        if name is None:
            for what, count in sorted(seen.items()):
                print(f"    {count:>10} {what}")
        failed |= (violation is None) != (name is None)
        sys.stdout.flush()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
