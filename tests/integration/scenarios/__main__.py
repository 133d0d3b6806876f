"""Random walks after each scenario: `python -m tests.integration.scenarios --seeds 1000`.

Each script is played on the shipped cores; the world it leaves then walks on by chance, seed by
seed, and is healed: all invariants hold after each step, and all replicas are equal in the end.
"""

import argparse
import sys
import time

from verify.walk.violation import Violation

from tests.integration.scenarios.scripts import SCRIPTS
from tests.integration.scenarios.walking import STEPS, walk_on


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.integration.scenarios", description=__doc__
    )
    parser.add_argument("--seeds", type=int, default=1000)
    parser.add_argument("--first", type=int, default=1)
    options = parser.parse_args()
    began_s, bad = time.perf_counter(), 0
    for script in SCRIPTS:
        for seed in range(options.first, options.first + options.seeds):
            try:
                walk_on(script, seed)
            except Violation as violation:
                bad += 1
                print(f"{script.__name__} seed {seed}: {violation}", flush=True)
    print(
        f"{len(SCRIPTS)} scenarios x {options.seeds} seeds x {STEPS} steps and a healing in "
        f"{time.perf_counter() - began_s:.0f} s: {bad} violations"
    )
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
