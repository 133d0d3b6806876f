"""`python -m tests.lake.kills --count 500 --seed 1`: kills of loads, counted by format and topic.

Each format and kind of topic has the same share of the kills. Ends with 1 where a row is lost or
doubled, or an offset is unaccounted for.
"""

import argparse
import itertools
import random
import shutil
import sys
import tempfile
import time
from pathlib import Path

from rig.broker import ottla as ottla_process

from tests.lake.kills.rounds import play, problems
from tests.lake.kills.topics import KINDS, Topic

FORMATS = ("parquet", "delta", "iceberg")


def main() -> int:
    """Play, print a line for each pair; the exit code."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--formats", default=",".join(FORMATS))
    given = parser.parse_args()
    pairs = list(itertools.product(given.formats.split(","), KINDS))
    each = -(-given.count // len(pairs))
    folder = Path(tempfile.mkdtemp(prefix="lake-kills-"))
    is_bad, total = False, 0
    settings = {"log.cleaner.backoff.ms": "200", "log.cleaner.min.cleanable.ratio": "0.01"}
    with ottla_process(settings=settings) as node:
        for form, kind in pairs:
            began = time.monotonic()
            chance = random.Random(f"{given.seed} {form} {kind}")
            topic = Topic.made(node.bootstrap, f"{form}-{kind}", kind, chance.getrandbits(32))
            table = folder / f"{form}_{kind}"
            tally = play(topic, table, form, each, chance)
            found = problems(topic, table, form)
            total += tally.kills
            is_bad = is_bad or bool(found)
            how = ", ".join(f"{count} {step}" for step, count in tally.killed.most_common())
            verdict = "; ".join(found) or "nothing lost or doubled, each offset accounted for"
            sys.stdout.write(
                f"{form:8} {kind:13} {tally.kills} kills ({how}), {tally.ended} loads ended, "
                f"{len(topic.known)} records, {time.monotonic() - began:.0f} s: {verdict}\n"
            )
            sys.stdout.flush()
    shutil.rmtree(folder, ignore_errors=True)
    sys.stdout.write(f"{total} kills: {'WRONG' if is_bad else 'right'}\n")
    return int(is_bad)


if __name__ == "__main__":
    sys.exit(main())
