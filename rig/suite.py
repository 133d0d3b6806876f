"""Runs the tests part by part, each in a process of its own, within a time budget that is enforced.

`python -m rig.suite` runs all parts; `python -m rig.suite unit clients` runs some. It prints
pytest's own closing lines, then a table, then their sum in pytest's words; the exit code is 1
when any part is red, runs over its budget, or skips a test while CI=true.
"""

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from rig.java import have_java, java_home
from rig.paths import OUT, ROOT

_OUTCOME = re.compile(r"(\d+) (passed|failed|errors?|skipped|deselected|xfailed|xpassed|warnings?)")
_NO_TESTS_COLLECTED = 5


@dataclass(frozen=True, slots=True)
class Part:
    """A share of the suite: where it lies, how long it may take, and in which surroundings.

    `only` and `without` are patterns of file names that divide a folder into two parts.
    """

    name: str
    paths: tuple[str, ...]
    budget_s: int
    environment: tuple[tuple[str, str], ...] = ()
    only: str | None = None
    without: str | None = None

    def arguments(self) -> list[str]:
        """What pytest is to collect."""
        if self.only is not None:
            found = (file for path in self.paths for file in (ROOT / path).rglob(self.only))
            return sorted(str(file.relative_to(ROOT)) for file in found)
        ignored = [] if self.without is None else [f"--ignore-glob=*/{self.without}"]
        return [*self.paths, *ignored]


_JAVA = "test_java_*.py"
# A budget ends what hangs, also where the machine is shared: on two quiet cores each part takes
# about a tenth to a fifth of it.
PARTS = (
    Part("unit", ("tests/unit",), 720),
    Part("unit, plain", ("tests/unit/record",), 300, (("OTTLA_PURE", "1"),)),
    Part("protocol", ("tests/protocol",), 300),
    Part("storage", ("tests/storage",), 300),
    Part("simulation", ("tests/simulation",), 720),
    Part("coordination", ("tests/coordination",), 360),
    Part("broker", ("tests/broker",), 300),
    Part("groups", ("tests/groups",), 300),
    Part("chaos", ("tests/chaos",), 900),
    Part("client", ("tests/client",), 300),
    Part("clients", ("tests/clients",), 720, without=_JAVA),
    Part("clients, Java", ("tests/clients",), 720, only=_JAVA),
    Part("badinput", ("tests/badinput",), 300),
    Part("fuzz", ("tests/fuzz",), 450),
    Part("lake", ("tests/lake",), 720),
    Part("cli", ("tests/cli",), 720),
    Part("docs", ("tests/docs",), 900),
    Part("cluster", ("tests/cluster",), 720),
    Part("papers", ("tests/papers",), 600),
    Part("suites", ("tests/suites",), 300),
)
# For folders of tests that the table does not name.
_OTHER_BUDGET_S = 360
# How much of what a red part printed stands once more at the end.
_LINES_TOLD = 60


@dataclass(slots=True)
class Result:
    """How one part ended."""

    part: Part
    seconds: float
    exit_code: int
    over_budget: bool
    closing: str
    counts: Counter[str] = field(default_factory=Counter)
    last_lines: Sequence[str] = ()

    def green(self) -> bool:
        return self.exit_code in (0, _NO_TESTS_COLLECTED) and not self.over_budget

    def verdict(self) -> str:
        if self.over_budget:
            return "OVER BUDGET"
        return "ok" if self.green() else "RED"


def parts() -> list[Part]:
    """The parts above, and every other folder of tests, so that none is ever left out."""
    named = {path.split("/")[1] for part in PARTS for path in part.paths}
    others = sorted(
        folder.name
        for folder in (ROOT / "tests").iterdir()
        if folder.is_dir() and folder.name not in named and any(folder.rglob("test_*.py"))
    )
    present = [p for p in PARTS if all((ROOT / path).exists() for path in p.paths)]
    return present + [Part(name, (f"tests/{name}",), _OTHER_BUDGET_S) for name in others]


def run(part: Part) -> Result:
    """Run one part, echoing what pytest prints, and stop it at the end of its budget."""
    print(f"\n== {part.name}: at most {part.budget_s} s ==", flush=True)
    command = [sys.executable, "-m", "pytest", "--durations=5", "--durations-min=1.0"]
    command += part.arguments()
    began_s = time.monotonic()
    child = subprocess.Popen(
        command,
        cwd=ROOT,
        env={**os.environ, **_java(), **dict(part.environment)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    assert child.stdout is not None
    lines: list[str] = []
    reader = threading.Thread(target=_echo, args=(child.stdout, lines), daemon=True)
    reader.start()
    try:
        exit_code = child.wait(part.budget_s)
        over_budget = False
    except subprocess.TimeoutExpired:
        # pytest's fault handler prints where each of its threads stands, then ends it.
        child.send_signal(signal.SIGABRT)
        with suppress(subprocess.TimeoutExpired):
            child.wait(10)
        # The whole group: brokers and JVMs that the tests started must not outlive them.
        with suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        exit_code, over_budget = child.wait(), True
    reader.join(timeout=10)
    closing = next((line for line in reversed(lines) if _OUTCOME.search(line)), "no closing line")
    counts = Counter({word.rstrip("s"): int(n) for n, word in _OUTCOME.findall(closing)})
    seconds = time.monotonic() - began_s
    last = lines[-_LINES_TOLD:]
    return Result(part, seconds, exit_code, over_budget, closing.strip(), counts, last)


def _java() -> dict[str, str]:
    """Where Spark finds the Java that the rig chose."""
    return {"JAVA_HOME": str(java_home())} if have_java() else {}


def _echo(stream: IO[str], lines: list[str]) -> None:
    for line in stream:
        lines.append(line)
        print(line, end="", flush=True)


def report(results: Sequence[Result], seconds: float) -> str:
    """How each red part ended, the table of parts and the sum of pytest's closing lines."""
    rows = []
    for red in (r for r in results if not r.green()):
        rows += [f"== {red.part.name}: the last that it printed =="]
        rows += [line.rstrip() for line in red.last_lines]
        rows += [""]
    rows += [f"{'part':<12} {'seconds':>8} {'budget':>7}  verdict      pytest's closing line"]
    rows += [
        f"{r.part.name:<12} {r.seconds:>8.1f} {r.part.budget_s:>7}  {r.verdict():<12} {r.closing}"
        for r in results
    ]
    total: Counter[str] = sum((r.counts for r in results), Counter())
    total["failed"] += sum(1 for r in results if not r.green() and not r.counts["failed"])
    order = ("failed", "passed", "skipped", "error", "xfailed", "xpassed", "warning")
    said = ", ".join(f"{total[word]} {word}" for word in order if total[word])
    rows.append(f"{f' {said} in {seconds:.2f}s ':=^80}")
    return "\n".join(rows)


def main(names: Sequence[str]) -> int:
    """Run the named parts, or all of them."""
    chosen = [part for part in parts() if not names or part.name in names]
    unknown = set(names) - {part.name for part in chosen}
    if unknown:
        known = ", ".join(part.name for part in parts())
        print(f"no such part: {', '.join(sorted(unknown))}; there are: {known}", file=sys.stderr)
        return 2
    began_s = time.monotonic()
    results = [run(part) for part in chosen]
    text = report(results, time.monotonic() - began_s)
    OUT.mkdir(exist_ok=True)
    Path(OUT / "test.txt").write_text(text + "\n")
    print("\n" + text, flush=True)
    return 0 if all(result.green() for result in results) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
