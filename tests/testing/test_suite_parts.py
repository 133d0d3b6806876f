"""The parts that `make test` runs."""

from collections import Counter
from pathlib import Path

from rig.paths import ROOT
from rig.suite import Part, parts


def files_of(part: Part) -> set[Path]:
    """The files of tests that pytest collects of a part."""
    found: set[Path] = set()
    for argument in part.arguments():
        if argument.startswith("--"):
            pattern = argument.removeprefix("--ignore-glob=")
            found = {file for file in found if not file.match(pattern)}
        elif (ROOT / argument).is_dir():
            found |= set((ROOT / argument).rglob("test_*.py"))
        else:
            found.add(ROOT / argument)
    return found


def test_every_file_of_tests_is_in_one_part() -> None:
    """None is left out; only what is run in its plain form, too, is in two."""
    times = Counter(file for part in parts() for file in files_of(part))
    written = set((ROOT / "tests").rglob("test_*.py"))
    assert set(times) == written
    twice = {file.relative_to(ROOT).parts[:3] for file, count in times.items() if count != 1}
    assert twice == {("tests", "unit", "record")}
