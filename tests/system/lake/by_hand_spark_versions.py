"""Versions of Spark that the lake is for: `python -m tests.system.lake.by_hand_spark_versions`.

Runs `spark_version_steps` in an environment (`rig.sparks`) of each of 4.0, 4.1, 4.2 and 4.3, and
prints a table. `--with 'pandas>=3'` takes another package than the project says.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from rig.broker import ottla
from rig.java import java_home
from rig.nodes import Node
from rig.sparks import VERSIONS, environment

from tests.system.lake.spark_version_steps import PARTITIONS, ROWS

_STEPS = Path(__file__).with_name("spark_version_steps.py")


def make_topics(node: Node, topic: str) -> None:
    """The topic with its records, and two to write into."""
    admin = AdminClient({"bootstrap.servers": node.bootstrap, "log_level": 0})
    names = [topic, f"{topic}-batch", f"{topic}-stream"]
    for created in admin.create_topics([NewTopic(one, PARTITIONS, 1) for one in names]).values():
        created.result(90)
    producer = Producer({"bootstrap.servers": node.bootstrap, "log_level": 0})
    for number in range(ROWS):
        producer.produce(topic, b"v%d" % number, b"k%d" % number)
    assert producer.flush(120) == 0


def outcomes(python: Path, node: Node, topic: str, folder: Path) -> dict[str, str]:
    """What each step gave; that of the last one, where the program did not get to its end."""
    make_topics(node, topic)
    done = subprocess.run(
        [python, _STEPS, node.bootstrap, topic, folder / topic],
        env={**os.environ, "JAVA_HOME": str(java_home()), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    found: dict[str, str] = dict(
        json.loads(line) for line in done.stdout.splitlines() if line.startswith("[")
    )
    if done.returncode:
        found["ended"] = f"code {done.returncode}: {done.stderr.strip().splitlines()[-1:]}"
    return found


def show(all_found: Sequence[dict[str, str]]) -> None:
    """A table in Markdown: a line for each step, a column for each version."""
    names = list(dict.fromkeys(name for found in all_found for name in found))
    for number, name in enumerate(names):
        print("|", " | ".join([name, *(found.get(name, "-") for found in all_found)]), "|")
        if number == 0:
            print("| --- " * (len(all_found) + 1) + "|")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("versions", nargs="*", default=VERSIONS)
    parser.add_argument("--with", dest="others", action="append", default=[], metavar="PACKAGE")
    words = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="spark-versions-") as scratch, ottla() as node:
        all_found = []
        for number, version in enumerate(words.versions):
            python = environment(version, words.others)
            found = outcomes(python, node, f"versions-{number}", Path(scratch))
            print(version, found, file=sys.stderr, flush=True)
            all_found.append(found)
        show(all_found)


if __name__ == "__main__":
    main()
