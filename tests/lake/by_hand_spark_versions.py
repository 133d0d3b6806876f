"""Versions of Spark that the lake is for: `python -m tests.lake.by_hand_spark_versions`.

Makes a virtual environment for each of 4.0, 4.1, 4.2 and 4.3, with the newest release of it and the
other packages that the project asks for, runs `spark_version_steps` in it, and prints a table. It
downloads some 450 MB for each. `--with 'pandas>=3'` takes another package than the project says.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import tomllib
import venv
from collections.abc import Sequence
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from packaging.requirements import Requirement
from rig.broker import ottla
from rig.java import java_home
from rig.nodes import Node
from rig.paths import ROOT

from tests.lake.spark_version_steps import PARTITIONS, ROWS

VERSIONS = ("4.0", "4.1", "4.2", "4.3")
_STEPS = Path(__file__).with_name("spark_version_steps.py")


def requirements(version: str, others: Sequence[str]) -> list[str]:
    """What the project and its extra `spark` ask for, with that version of Spark and `others`."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    asked = [*project["dependencies"], *extras["lake"], *extras["spark"]]
    chosen = {Requirement(one).name: one for one in asked}
    del chosen["ottla"]  # The extra `lake`, which is there.
    chosen |= {Requirement(one).name: one for one in (f"pyspark=={version}.*", *others)}
    return list(chosen.values())


def environment(folder: Path, version: str, others: Sequence[str]) -> Path:
    """Make the environment, where it is not there; its python. Ottla is that of this tree."""
    python = folder / version / "bin" / "python"
    if not python.exists():
        venv.create(folder / version, with_pip=True)
    words = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    subprocess.run([*words, *requirements(version, others)], check=True)
    (packages,) = (folder / version / "lib").glob("python*/site-packages")
    (packages / "ottla.pth").write_text(f"{ROOT / 'src'}\n")
    return python


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
    parser.add_argument("--folder", type=Path, help="keep the environments here")
    words = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="spark-versions-") as scratch, ottla() as node:
        folder = words.folder or Path(scratch) / "environments"
        all_found = []
        for number, version in enumerate(words.versions):
            python = environment(folder, version, words.others)
            found = outcomes(python, node, f"versions-{number}", Path(scratch))
            print(version, found, file=sys.stderr, flush=True)
            all_found.append(found)
        show(all_found)


if __name__ == "__main__":
    main()
