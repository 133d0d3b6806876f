"""Tests of Go modules: `go test -json` from the module cache, and what it printed."""

import json
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from rig.paths import RIG, ROOT
from suites.result import Outcome, Result

# go.mod and go.sum of ours name the modules, their versions and their checksums.
_MODULE = ROOT / "suites" / "go"
_FOLDER = RIG / "suites-go"
_ENDS = {"pass": Outcome.PASS, "fail": Outcome.FAIL, "skip": Outcome.SKIP}
_REASON_LINES = 2


def fetch() -> None:
    """Download the modules by the ordinary Go client."""
    _FOLDER.mkdir(parents=True, exist_ok=True)
    for name in ("go.mod", "go.sum"):
        shutil.copyfile(_MODULE / name, _FOLDER / name)
    subprocess.run(["go", "mod", "download"], cwd=_FOLDER, check=True)


def version(module: str) -> str:
    """The version of a module that go.mod pins."""
    for line in (_MODULE / "go.mod").read_text().splitlines():
        words = line.split()
        if words[:1] == [module]:
            return words[1]
    raise ValueError(f"suites/go/go.mod does not require {module}")


def run(
    package: str,
    pattern: str,
    log: Path,
    *,
    env: Mapping[str, str],
    timeout_s: int = 1200,
    flags: Sequence[str] = (),
) -> list[Result]:
    """Run those tests of a package whose names match; `log` keeps all that they print."""
    command = ["go", "test", "-json", "-count=1", f"-timeout={timeout_s}s", f"-run={pattern}"]
    with log.open("wb") as output:
        subprocess.run(
            [*command, *flags, package],
            cwd=_FOLDER,
            env={**os.environ, **env},
            check=False,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    return parse(log.read_text(errors="replace"))


def parse(printed: str) -> list[Result]:
    """The results in the events of `go test -json`, by the time each test ended.

    A test that has subtests is left out: they say the same in more detail. A test that
    was running when the process ended has failed.
    """
    said: dict[str, list[str]] = {}
    found: dict[str, Result] = {}
    for line in printed.splitlines():
        event = _event(line)
        test = event.get("Test")
        if not isinstance(test, str):
            continue
        action = str(event.get("Action"))
        said.setdefault(test, [])
        if action == "output":
            said[test].append(str(event.get("Output", "")))
        elif action in _ENDS:
            seconds = float(str(event.get("Elapsed", 0.0)))
            reason = "" if action == "pass" else _reason(said[test])
            found[test] = Result(test, _ENDS[action], seconds, reason)
    for test, lines in said.items():
        if test not in found:
            reason = _reason(lines) or "still running when the process ended"
            found[test] = Result(test, Outcome.FAIL, 0.0, reason)
    return [result for result in found.values() if not _has_subtests(result.test, said)]


def _event(line: str) -> dict[str, object]:
    try:
        event = json.loads(line)
    except ValueError:
        return {}
    return event if isinstance(event, dict) else {}


def _has_subtests(test: str, said: Mapping[str, object]) -> bool:
    return any(other.startswith(f"{test}/") for other in said)


def _reason(lines: list[str]) -> str:
    """What the test itself said last: lines that name its file, not those of a logger."""
    own = [line.strip() for line in "".join(lines).splitlines() if "_test.go:" in line]
    return " ".join(own[-_REASON_LINES:])[:300]
