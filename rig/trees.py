"""Commands that run the broker of another source tree, to measure it beside this one."""

import sys
from pathlib import Path


def python(source: Path | None) -> list[str | Path]:
    """The interpreter, with the modules of `source` (a folder `src`) before those of this tree."""
    if source is None:
        return [sys.executable]
    return ["env", f"PYTHONPATH={source}", sys.executable]


def broker(source: Path | None, file: Path) -> list[str | Path]:
    """Run a broker from its settings file."""
    main = "ottla.broker.process.main"
    if source is not None and not (source / "ottla/broker/process/main.py").exists():
        # Its place until the packages of the broker were made.
        main = "ottla.broker.main"
    return [*python(source), "-m", main, file]
