"""Runs the tests part by part, each in a process of its own, within a time budget that is enforced.

`python -m rig.suite` runs all parts; `python -m rig.suite unit clients` runs some. Many parts wait
more than they compute, so three run side by side where there are two processors (`--workers`). Each
part's output is printed when it ends, then a table with what each waited and computed, then the sum
in pytest's words; the exit code is 1 when any part is red, runs over its budget, or skips a test
while CI=true.
"""

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from queue import SimpleQueue
from typing import IO

from rig.java import have_java, java_home
from rig.paths import OUT, ROOT
from rig.probe import PORTS_VARIABLE, port_shares

_OUTCOME = re.compile(r"(\d+) (passed|failed|errors?|skipped|deselected|xfailed|xpassed|warnings?)")
_NO_TESTS_COLLECTED = 5


@dataclass(frozen=True, slots=True)
class Part:
    """A share of the suite: where it lies, how long it may take, and in which surroundings.

    `only` is a pattern of file names, and `without` one of paths' ends, that divide a folder.
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


# Far more than the tests write that write in memory.
_MEMORY_BYTES_MIN = 2 << 30


def _in_memory() -> tuple[tuple[str, str], ...]:
    """Surroundings of tests that write many small files, where the system keeps some in memory."""
    folder = Path("/dev/shm")
    if not folder.is_dir() or shutil.disk_usage(folder).free < _MEMORY_BYTES_MIN:
        return ()
    return (("TMPDIR", str(folder)), ("PYTEST_ADDOPTS", "-o tmp_path_retention_policy=failed"))


_JAVA = "test_java_*.py"
_LAKE_A_TO_F = "test_[a-f]*.py"
_LAKE_G_TO_R = "test_[g-r]*.py"
# They start in this order: the longest first, so that none of them runs alone at the end, and those
# that compute beside those that wait. A budget ends what hangs, also where the machine is shared:
# on two quiet cores each part takes about a tenth to a third of it.
PARTS = (
    Part("lake, a to f", ("tests/system/lake",), 1500, only=_LAKE_A_TO_F),
    Part("cluster", ("tests/system/cluster",), 720),
    Part("clients", ("tests/system/clients",), 720, without=_JAVA),
    Part("lake, g to r", ("tests/system/lake",), 1500, only=_LAKE_G_TO_R),
    Part("chaos", ("tests/system/chaos",), 900),
    Part("cli", ("tests/system/cli",), 900),
    Part("console", ("tests/system/console",), 600),
    Part("lake, the rest", ("tests/system/lake",), 1500, without="test_[a-r]*.py"),
    Part("clients, Java", ("tests/system/clients",), 720, only=_JAVA),
    Part("unit, lake", ("tests/unit/lake",), 1500, _in_memory()),
    Part("client", ("tests/integration/client",), 600),
    Part("unit", ("tests/unit",), 1500, _in_memory(), without="unit/lake"),
    Part("papers", ("tests/system/papers",), 720),
    Part("broker", ("tests/integration/broker",), 900),
    Part("stores", ("tests/integration/lake_stores",), 720),
    Part("groups", ("tests/integration/groups",), 450),
    Part("simulation", ("tests/integration/simulation",), 720),
    Part("coordination", ("tests/integration/coordination",), 360),
    Part("protocol", ("tests/integration/protocol",), 300),
    Part("fuzz", ("tests/integration/fuzz",), 450),
    Part("packaging", ("tests/system/packaging",), 900),
    Part("docs", ("tests/system/docs",), 900),
    Part("replication", ("tests/integration/replication",), 300),
    Part("testing", ("tests/integration/testing",), 360),
    Part("platforms", ("tests/system/platforms", "tests/system/suites"), 360),
    Part(
        "verify",
        ("tests/integration/walk", "tests/integration/scenarios", "tests/integration/verify"),
        360,
    ),
    Part("bad input", ("tests/integration/bad_input", "tests/integration/storage"), 360),
)
# The kinds of tests that have a folder for each subject.
KINDS = ("integration", "system")
# For folders of tests that the table does not name.
_OTHER_BUDGET_S = 360
# How much of what a red part printed stands once more at the end.
_LINES_SHOWN = 60
# A part may run a Kafka and three brokers, or Spark: about 3 GB.
_PART_BYTES = 4 << 30
_WORKERS_MAX = 3
_running: "set[subprocess.Popen[str]]" = set()
_printing = threading.Lock()


@dataclass(slots=True)
class Result:
    """How one part ended."""

    part: Part
    seconds: float
    # Seconds of processors that it and all its children used.
    cpu_s: float
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
    named = {path for part in PARTS for path in part.paths}
    folders = (folder for kind in KINDS for folder in sorted((ROOT / "tests" / kind).iterdir()))
    others = [
        Part(folder.name, (path,), _OTHER_BUDGET_S)
        for folder in folders
        if (path := folder.relative_to(ROOT).as_posix()) not in named
        and folder.is_dir()
        and any(folder.rglob("test_*.py"))
    ]
    present = [p for p in PARTS if all((ROOT / path).exists() for path in p.paths)]
    return present + others


def run(part: Part, ports: str) -> Result:
    """Run one part with ports of its own; print what pytest printed. Stop it after its budget."""
    print(f"== {part.name}: begins, with at most {part.budget_s} s ==", flush=True)
    command = [sys.executable, "-m", "pytest", "--durations=5", "--durations-min=1.0"]
    command += part.arguments()
    surroundings = {**_java(), PORTS_VARIABLE: ports, **dict(part.environment)}
    began_s = time.monotonic()
    child = subprocess.Popen(
        command,
        cwd=ROOT,
        env={**os.environ, **surroundings},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    _running.add(child)
    assert child.stdout is not None
    lines: list[str] = []
    reader = threading.Thread(target=_read, args=(child.stdout, lines), daemon=True)
    reader.start()
    cpu: list[float] = []
    waiter = threading.Thread(target=_wait, args=(child, cpu), daemon=True)
    waiter.start()
    waiter.join(part.budget_s)
    over_budget = waiter.is_alive()
    if over_budget:
        # pytest's fault handler prints where each of its threads stands, then ends it.
        with suppress(ProcessLookupError):
            os.kill(child.pid, signal.SIGABRT)
        waiter.join(10)
        # Brokers and JVMs that the tests started must not outlive them.
        _kill(child)
        waiter.join()
    reader.join(timeout=10)
    _running.discard(child)
    closing = next((line for line in reversed(lines) if _OUTCOME.search(line)), "no closing line")
    counts = Counter({word.rstrip("s"): int(n) for n, word in _OUTCOME.findall(closing)})
    seconds = time.monotonic() - began_s
    last = lines[-_LINES_SHOWN:]
    with _printing:
        print(f"\n== {part.name} ==\n{''.join(lines)}", flush=True)
    return Result(
        part, seconds, sum(cpu), child.returncode, over_budget, closing.strip(), counts, last
    )


def _wait(child: "subprocess.Popen[str]", cpu: list[float]) -> None:
    """Wait for a part's end, and note the CPU time of it and of what it waited for."""
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    cpu.append(usage.ru_utime + usage.ru_stime)


def _kill(child: "subprocess.Popen[str]") -> None:
    """Kill a part's whole process group."""
    with suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)


def run_all(
    chosen: Sequence[Part], workers: int, run_one: Callable[[Part, str], Result] = run
) -> list[Result]:
    """Run parts in their order, so many side by side; the results are in the same order.

    No two parts that run side by side are given the same ports.
    """
    shares: SimpleQueue[str] = SimpleQueue()
    for share in port_shares(workers):
        shares.put(share)

    def with_ports(part: Part) -> Result:
        share = shares.get()
        try:
            return run_one(part, share)
        finally:
            shares.put(share)

    with ThreadPoolExecutor(workers) as executor:
        try:
            return list(executor.map(with_ports, chosen))
        except BaseException:
            # Interrupted: parts are in sessions of their own, which no signal of ours reaches.
            executor.shutdown(wait=False, cancel_futures=True)
            for child in list(_running):
                _kill(child)
            raise


def _java() -> dict[str, str]:
    """Where Spark finds the Java that the rig chose."""
    return {"JAVA_HOME": str(java_home())} if have_java() else {}


def _read(stream: IO[str], lines: list[str]) -> None:
    lines += stream


def report(results: Sequence[Result], seconds: float) -> str:
    """How each red part ended, the table of parts and the sum of pytest's closing lines."""
    rows = []
    for red in (r for r in results if not r.green()):
        rows += [f"== {red.part.name}: the last that it printed =="]
        rows += [line.rstrip() for line in red.last_lines]
        rows += [""]
    rows += [f"{'part':<14} {'seconds':>7} {'CPU s':>7} {'budget':>6}  verdict      closing line"]
    rows += [
        f"{r.part.name:<14} {r.seconds:>7.1f} {r.cpu_s:>7.1f} {r.part.budget_s:>6}  "
        f"{r.verdict():<12} {r.closing}"
        for r in results
    ]
    cpu_s = sum(r.cpu_s for r in results)
    rows.append(f"{'all':<14} {seconds:>7.1f} {cpu_s:>7.1f}")
    total: Counter[str] = sum((r.counts for r in results), Counter())
    total["failed"] += sum(1 for r in results if not r.green() and not r.counts["failed"])
    order = ("failed", "passed", "skipped", "error", "xfailed", "xpassed", "warning")
    said = ", ".join(f"{total[word]} {word}" for word in order if total[word])
    rows.append(f"{f' {said} in {seconds:.2f}s ':=^80}")
    return "\n".join(rows)


def main(arguments: Sequence[str]) -> int:
    """Run the named parts, or all of them."""
    parser = argparse.ArgumentParser(prog="python -m rig.suite", description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--workers", type=int, default=_workers())
    given = parser.parse_args(arguments)
    names = given.names
    chosen = [part for part in parts() if not names or part.name in names]
    unknown = set(names) - {part.name for part in chosen}
    if unknown:
        known = ", ".join(part.name for part in parts())
        print(f"no such part: {', '.join(sorted(unknown))}; there are: {known}", file=sys.stderr)
        return 2
    began_s = time.monotonic()
    results = run_all(chosen, given.workers)
    text = report(results, time.monotonic() - began_s)
    OUT.mkdir(exist_ok=True)
    Path(OUT / "test.txt").write_text(text + "\n")
    print("\n" + text, flush=True)
    return 0 if all(result.green() for result in results) else 1


def _workers() -> int:
    """Parts that run side by side: one more than processors, but not more than memory is for."""
    memory_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    most = min((os.cpu_count() or 1) + 1, memory_bytes // _PART_BYTES, _WORKERS_MAX)
    return max(1, most)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
