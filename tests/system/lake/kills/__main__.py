"""Kills of loads by format and topic: `python -m tests.system.lake.kills --count 500 --seed 1`.

Each format, kind of topic, verb (load, follow) and victim (loader, broker) has the same share of
the kills; `--kafka` takes Apache Kafka as broker. Loads run in one process each, without Spark:
tests/system/lake/test_follow_processes.py kills Spark's workers. Ends with 1 where a row is lost or
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

from tests.system.lake.kills.broker import MortalBroker
from tests.system.lake.kills.rounds import VERBS, VICTIMS, play, problems
from tests.system.lake.kills.topics import KINDS, Topic

FORMATS = ("parquet", "delta", "iceberg")


def main() -> int:
    """Play, print a line for each pair; the exit code."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--formats", default=",".join(FORMATS))
    parser.add_argument("--victims", default=",".join(VICTIMS))
    parser.add_argument("--verbs", default=",".join(VERBS))
    parser.add_argument("--kafka", action="store_true", help="Apache Kafka as broker")
    given = parser.parse_args()
    worlds = (given.formats, given.victims, given.verbs)
    pairs = list(itertools.product(*(one.split(",") for one in worlds), KINDS))
    each = -(-given.count // len(pairs))
    folder = Path(tempfile.mkdtemp(prefix="lake-kills-"))
    is_bad, total = False, 0
    broker = MortalBroker(folder / "broker", is_kafka=given.kafka)
    try:
        for form, victim, verb, kind in pairs:
            began = time.monotonic()
            name = f"{form}-{victim}-{verb}-{kind}"
            chance = random.Random(f"{given.seed} {name}")
            topic = Topic.made(broker.node.bootstrap, name, kind, chance.getrandbits(32))
            table = folder / name.replace("-", "_")
            tally = play(topic, table, form, each, chance, broker, victim, verb)
            found = problems(topic, table, form)
            total += tally.kills
            is_bad = is_bad or bool(found)
            how = ", ".join(f"{count} {step}" for step, count in tally.killed.most_common())
            verdict = "; ".join(found) or "nothing lost or doubled, each offset accounted for"
            sys.stdout.write(
                f"{form:8} {kind:13} {victim} of {verb}: {tally.kills} kills ({how}), "
                f"{tally.ended} ended, {tally.failed} failed, {len(topic.known)} records, "
                f"{time.monotonic() - began:.0f} s: {verdict}\n"
            )
            sys.stdout.flush()
    finally:
        broker.end()
    shutil.rmtree(folder, ignore_errors=True)
    sys.stdout.write(f"{total} kills: {'WRONG' if is_bad else 'right'}\n")
    return int(is_bad)


if __name__ == "__main__":
    sys.exit(main())
