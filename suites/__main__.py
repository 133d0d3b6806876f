"""`python -m suites [NAME]…`: run suites of others against Ottla and Apache Kafka, and compare.

Both lists are printed beside each other, and written to docs/reference/compatibility.md.
"""

import argparse
import os
import platform
import sys
import time

from rig.jars import KAFKA_VERSION
from rig.kafka import available
from suites import compaction, connect, franz, kafka_go, kafka_python, kept, mirror, streams, tools
from suites.report import terminal, write
from suites.result import Outcome, side_by_side
from suites.sides import SIDES, side
from suites.suite import Suite

_ALL = (
    franz.SUITE,
    kafka_go.SUITE,
    kafka_python.SUITE,
    tools.SUITE,
    compaction.SUITE,
    *streams.SUITES,
    connect.SUITE,
    mirror.SUITE,
)
SUITES = {suite.name: suite for suite in _ALL}


def main() -> int:
    """The exit code is 1 where Ottla fails a test that Kafka passes."""
    parser = argparse.ArgumentParser(prog="python -m suites", description=__doc__)
    parser.add_argument("names", nargs="*", help=f"some of: {', '.join(SUITES)}")
    parser.add_argument(
        "--only", choices=(*SIDES, "none"), help="run one side, with the other's last results"
    )
    arguments = parser.parse_args()
    if unknown := set(arguments.names) - set(SUITES):
        parser.error(f"no such suite: {', '.join(sorted(unknown))}; there are {', '.join(SUITES)}")
    behind = 0
    for name in arguments.names or SUITES:
        suite = SUITES[name]
        print(f"-- {suite.title}", flush=True)
        if reason := suite.missing() or available():
            print(f"skipped: {reason}", flush=True)
            continue
        for one in SIDES:
            if arguments.only in (None, one):
                suite.fetch()
                _run(suite, one)
        behind += _compare(suite)
    return 1 if behind else 0


def _run(suite: Suite, name: str) -> None:
    print(f"   against {name}", flush=True)
    with side(name, suite) as started:
        results = suite.run(started)
    kept.write(suite.name, name, results)


def _compare(suite: Suite) -> int:
    """Print and write both lists; how many tests Ottla fails that Kafka passes."""
    lists = [kept.read(suite.name, name) for name in SIDES]
    rows = side_by_side(*lists)
    print(terminal(suite, rows), flush=True)
    if all(lists):
        write(suite, rows, _about(suite))
    return sum(
        row.ottla.outcome is Outcome.FAIL and row.kafka.outcome is Outcome.PASS for row in rows
    )


def _brokers(suite: Suite) -> str:
    if suite.brokers == 1:
        return "one broker"
    return "three brokers" if suite.clusters == 1 else f"{suite.clusters} times three brokers"


def _about(suite: Suite) -> str:
    """When, where and how this list came to be."""
    day = time.strftime("%Y-%m-%d", time.gmtime())
    return (
        f"Run on {day} with `make suites SUITES={suite.name}` against {_brokers(suite)} of each "
        f"side, Apache Kafka {KAFKA_VERSION}; {os.cpu_count()} cores, Python "
        f"{platform.python_version()}."
    )


if __name__ == "__main__":
    sys.exit(main())
