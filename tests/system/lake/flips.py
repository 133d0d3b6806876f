"""Flips single bits of all files of tables, and looks whether `verify` finds and names each.

    python -m tests.system.lake.flips --count 1000 --seed 1
    python -m tests.system.lake.flips --count 200 --format iceberg

Prints how each format fared, and each flip that was not found or not named; exits with 1 then.
A flip in the log of Delta or Iceberg need not be found: the format's reader judges those files.
What it says is an error with a sentence, or a problem in the report.
"""

import argparse
import random
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import ottla.lake
from ottla.base.errors import OttlaError
from ottla.lake.tables.opening import open_table
from tests.unit.lake.tables import commit

FORMATS = ("parquet", "delta", "iceberg")
# Enough for a checkpoint of ottla's and one of Delta's.
LOADS = 12
GOOD = ("named", "of the format's log")
# Files that the reader of the table's format judges.
_OF_THE_FORMAT = ("_delta_log/", "metadata/", "_ottla/catalog.db")


@dataclass(frozen=True, slots=True)
class Flip:
    """One flipped bit, and what became of it: one of GOOD, or what went wrong."""

    path: str
    bit: int
    outcome: str


def make(folder: Path, kind: str) -> None:
    """A proven table of a dozen loads."""
    table = open_table(str(folder), kind)
    for _ in range(LOADS):
        commit(table, 5)
    found = ottla.lake.verify(str(folder), bootstrap=None)
    assert (found.problems, found.remarks, found.uncounted) == ([], [], [])


def flips(folder: Path, count: int, chance: random.Random) -> Iterator[Flip]:
    """Flip `count` bits of files chosen at random, each by itself; all files are chosen alike."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.stat().st_size)
    for _ in range(count):
        path = chance.choice(files)
        content = path.read_bytes()
        bit = chance.randrange(8 * len(content))
        flipped = bytearray(content)
        flipped[bit // 8] ^= 1 << bit % 8
        path.write_bytes(flipped)
        try:
            yield Flip(str(path.relative_to(folder)), bit, outcome(folder, path))
        finally:
            path.write_bytes(content)


def outcome(folder: Path, path: Path) -> str:
    """What `verify` makes of a table in which this file is damaged."""
    name = path.name
    is_theirs = str(path.relative_to(folder)).startswith(_OF_THE_FORMAT)
    try:
        found = ottla.lake.verify(str(folder), bootstrap=None)
    except OttlaError as error:
        is_named = name in error.message
        if is_theirs and not is_named:
            return "of the format's log"
        return "named" if is_named else f"not named: {error.message}"
    except BaseException as error:  # noqa: BLE001  # A panic of Rust is no Exception.
        return f"traceback: {type(error).__name__}: {error}"
    told = "\n".join(found.problems)
    if is_theirs and name not in told:
        return "of the format's log"
    if found.proven:
        return "not found"
    return "named" if name in told else f"not named: {told[:200]}"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--count", type=int, default=1000, help="of all formats together")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--format", choices=FORMATS, action="append")
    given = parser.parse_args(arguments)
    kinds = given.format or FORMATS
    bad = 0
    for number, kind in enumerate(kinds):
        count = given.count // len(kinds) + (number < given.count % len(kinds))
        with TemporaryDirectory(prefix="ottla-flips-") as folder:
            make(Path(folder), kind)
            found: Counter[str] = Counter()
            for flip in flips(Path(folder), count, random.Random(f"{given.seed} {kind}")):
                found[flip.outcome.partition(":")[0]] += 1
                if flip.outcome not in GOOD:
                    bad += 1
                    sys.stdout.write(f"{kind}: bit {flip.bit} of {flip.path}: {flip.outcome}\n")
                    sys.stdout.flush()
        told = ", ".join(f"{many} {what}" for what, many in sorted(found.items()))
        sys.stdout.write(f"{kind}: {count} flips: {told}\n")
        sys.stdout.flush()
    return 1 if bad else 0


if __name__ == "__main__":
    raise SystemExit(main())
