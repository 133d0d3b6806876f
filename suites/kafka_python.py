"""kafka-python's integration tests, which its source distribution brings along.

They expect a single broker and run with the client of the same distribution.
"""

import os
import subprocess
import sys
import tarfile
import xml.etree.ElementTree as ET
from pathlib import Path

from rig.jars import KAFKA_VERSION
from rig.paths import RIG
from suites.result import Outcome, Result
from suites.suite import AUTHORIZER, Side, Suite

_VERSION = "3.0.12"
# Those for TLS and SASL start brokers of their own.
_TESTS = tuple(
    f"test/integration/test_{name}_integration.py" for name in ("admin", "consumer", "producer")
)
_FOLDER = RIG / "suites-kafka-python"
_SOURCE = _FOLDER / f"kafka_python-{_VERSION}"
# What the distribution leaves out of its tests: the mark of a package, and a module with the
# classes for a broker that runs already and for one that the tests start.
_LEFT_OUT = {
    "test/__init__.py": "",
    "test/service.py": """
class ExternalService:
    def __init__(self, host, port):
        self.host, self.port = host, port

    def open(self):
        pass

    def stop(self):
        pass

    def dump_logs(self):
        pass


class SpawnedService:
    def __init__(self, *arguments):
        raise NotImplementedError("these tests run against brokers that are there")
""",
}


def _fetch() -> None:
    if (_SOURCE / "PKG-INFO").exists():
        return
    subprocess.run(
        [
            *(sys.executable, "-m", "pip", "download", "-q", "--no-deps"),
            *("--no-binary", ":all:", "-d", _FOLDER, f"kafka-python=={_VERSION}"),
        ],
        check=True,
    )
    with tarfile.open(_SOURCE.with_name(f"{_SOURCE.name}.tar.gz")) as archive:
        archive.extractall(_FOLDER, filter="data")
    for name, text in _LEFT_OUT.items():
        (_SOURCE / name).write_text(text)


def _run(side: Side) -> list[Result]:
    report = side.folder / "report.xml"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--timeout=300"]
    with (side.folder / "pytest.log").open("wb") as output:
        subprocess.run(
            [*command, f"--junitxml={report}", *_TESTS],
            cwd=_SOURCE,
            env={
                **os.environ,
                "PYTHONPATH": str(_SOURCE),
                "KAFKA_URI": f"kafka://{side.bootstrap.split(',')[0]}",
                "KAFKA_VERSION": KAFKA_VERSION,
                # The distribution of a broker that the tests would start: it has to be there.
                "KAFKA_ROOT": str(side.folder),
            },
            check=False,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    return parse(report)


def parse(report: Path) -> list[Result]:
    """The results in a JUnit report of pytest's."""
    results = []
    for case in ET.parse(report).iter("testcase"):
        outcome, reason = Outcome.PASS, ""
        for child in case:
            if child.tag in ("failure", "error"):
                outcome = Outcome.FAIL
                reason = child.get("message", "")
            elif child.tag == "skipped":
                outcome = Outcome.SKIP
                reason = child.get("message", "")
        module = case.get("classname", "").rpartition(".")[2]
        name = f"{module}: {case.get('name', '')}"
        first = reason.strip().splitlines()[:2]
        results.append(Result(name, outcome, float(case.get("time", "0")), " ".join(first)[:300]))
    return results


SUITE = Suite(
    name="kafka-python",
    title="kafka-python: its integration tests",
    source=f"PyPI: kafka-python {_VERSION}, source distribution",
    needs=(),
    fetch=_fetch,
    run=_run,
    settings={**AUTHORIZER, "num.partitions": "4"},
    brokers=1,
)
