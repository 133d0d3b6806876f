"""The parts that `make test` runs."""

import threading
from collections import Counter
from pathlib import Path

from rig.paths import ROOT
from rig.suite import Part, Result, parts, run_all


def files_of(part: Part) -> set[Path]:
    """The files of tests that pytest collects of a part."""
    found: set[Path] = set()
    for argument in part.arguments():
        if argument.startswith("--"):
            pattern = argument.removeprefix("--ignore-glob=")
            found = {
                file for file in found if not any(p.match(pattern) for p in (file, *file.parents))
            }
        elif (ROOT / argument).is_dir():
            found |= set((ROOT / argument).rglob("test_*.py"))
        else:
            found.add(ROOT / argument)
    return found


def test_every_file_of_tests_is_in_one_part() -> None:
    """None is left out, and none is tried twice."""
    times = Counter(file for part in parts() for file in files_of(part))
    written = set((ROOT / "tests").rglob("test_*.py"))
    assert set(times) == written
    assert set(times.values()) == {1}


def test_parts_run_side_by_side_with_ports_of_their_own() -> None:
    """Two at a time, each with its own ports; their results are in the order of the parts."""
    both_run = threading.Barrier(2)
    ports: list[range] = []

    def run_one(part: Part, share: str) -> Result:
        first, last = map(int, share.split("-"))
        ports.append(range(first, last + 1))
        both_run.wait(120)
        return Result(part, 0.0, 0.0, 0, over_budget=False, closing="1 passed")

    chosen = [Part(name, (), 1) for name in "abcd"]
    assert [result.part for result in run_all(chosen, 2, run_one)] == chosen
    one, other = sorted({(share.start, share.stop) for share in ports})
    assert one[0] < one[1] <= other[0] < other[1]
