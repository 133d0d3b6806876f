"""The results of each suite's last run, in out/: one side can be run again by itself."""

import json
from dataclasses import asdict
from pathlib import Path

from rig.paths import OUT
from suites.result import Outcome, Result


def _file(suite: str, side: str) -> Path:
    return OUT / "suites" / suite / f"{side}.json"


def write(suite: str, side: str, results: list[Result]) -> None:
    """Keep them in place of those of the last run."""
    _file(suite, side).write_text(json.dumps([asdict(each) for each in results], indent=1))


def read(suite: str, side: str) -> list[Result]:
    """Those of the last run; none where there was none."""
    file = _file(suite, side)
    if not file.exists():
        return []
    return [
        Result(each["test"], Outcome(each["outcome"]), each["seconds"], each["reason"])
        for each in json.loads(file.read_text())
    ]
