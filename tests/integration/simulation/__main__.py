"""Which broken rules of transactions chance finds: `python -m tests.integration.simulation`.

Each mutant runs in worlds whose troubles are aimed at decisions (`--aimed`), seed by seed, until
one goes wrong. First the same seeds run unbroken. Scripts kill every mutant at once; this tells
whether the worlds are dangerous enough to find what nobody has thought of.
"""

import argparse
import logging
import sys

import pytest
from verify.simulation.judging.report import Report
from verify.simulation.judging.table import wrongs
from verify.simulation.run import simulate_seed
from verify.simulation.worlds.aimed import AIMED_SEED_S, draw_aimed

from . import transaction_mutants
from .mutants import Mutate
from .scripts import mutants_of


def main() -> int:
    """The command; 1 where a mutant was not found, or anything was wrong unbroken."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.integration.simulation", description=__doc__
    )
    parser.add_argument("--seeds", type=int, default=40)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--mutant", default=None, help="this one only, and not unbroken first")
    options = parser.parse_args()
    logging.disable(logging.CRITICAL)
    seeds = range(options.first, options.first + options.seeds)
    mutants = [
        mutate
        for mutate in mutants_of(transaction_mutants)
        if options.mutant in (None, mutate.__name__)
    ]
    bad = 0 if options.mutant else sum(not _run(seed).is_good for seed in seeds)
    if options.mutant is None:
        _say(f"unbroken: {bad} of {len(seeds)} seeds go wrong")
    lived = [mutate.__name__ for mutate in mutants if not _is_found(mutate, seeds)]
    _say(f"{len(mutants) - len(lived)} of {len(mutants)} mutants found")
    return 1 if bad or lived else 0


def _is_found(mutate: Mutate, seeds: range) -> bool:
    with pytest.MonkeyPatch.context() as patch:
        mutate(patch)
        for number, seed in enumerate(seeds, 1):
            report = _run(seed)
            if not report.is_good:
                what = wrongs(report, 1).strip()
                _say(f"{mutate.__name__}: found in seed {seed}, after {number}: {what}")
                return True
    _say(f"{mutate.__name__}: not found in {len(seeds)} seeds")
    return False


def _run(seed: int) -> Report:
    return simulate_seed(seed, seconds=AIMED_SEED_S, profile=draw_aimed(seed))


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
