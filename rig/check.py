"""`make check`: format, lint, types and layers, in one table; then the counts of the structure."""

import subprocess
import sys
import time
from pathlib import Path

from rig import house
from rig.paths import ROOT

CHECKS = (
    ("format", ("-m", "ruff", "format", "--check", "-q", ".")),
    ("lint", ("-m", "ruff", "check", "-q", ".")),
    ("types", ("-m", "mypy")),
    ("nothing for tests", ("-m", "rig.unused")),
    ("imports of tests", ("-m", "rig.imported")),
    ("types of the rig", ("-m", "mypy", "-p", "rig", "-p", "bench", "-p", "chaos", "-p", "suites")),
)


def main() -> int:
    """Run every check, and show the words of those that failed."""
    failed = []
    commands = [(name, [sys.executable, *arguments]) for name, arguments in CHECKS]
    commands.append(("layers", [str(Path(sys.executable).parent / "lint-imports")]))
    for name, command in commands:
        began_s = time.monotonic()
        done = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)
        verdict = "ok" if done.returncode == 0 else "RED"
        print(f"{name:<18} {verdict:<4} {time.monotonic() - began_s:6.1f} s", flush=True)
        if done.returncode != 0:
            failed.append(name)
            print(done.stdout + done.stderr)
    print()
    grown = house.main()
    return 1 if failed or grown else 0


if __name__ == "__main__":
    sys.exit(main())
