"""Environments with other versions of Spark than the one that is installed here.

Each has the newest release of a version, and the packages that ottla and its extra `spark` ask for.
Some 450 MB are downloaded for each, where it is not there yet.
"""

import subprocess
import sys
import tomllib
import venv
from collections.abc import Sequence
from pathlib import Path

from packaging.requirements import Requirement

from rig.paths import RIG, ROOT

VERSIONS = ("4.0", "4.1", "4.2", "4.3")
FOLDER = RIG / "spark-versions"


def requirements(version: str, others: Sequence[str] = ()) -> list[str]:
    """What the project and its extra `spark` ask for, with that version of Spark and `others`."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    asked = [*project["dependencies"], *extras["lake"], *extras["spark"]]
    chosen = {Requirement(one).name: one for one in asked}
    del chosen["ottla"]  # The extra `lake`, which is there.
    chosen |= {Requirement(one).name: one for one in (f"pyspark=={version}.*", *others)}
    return list(chosen.values())


def environment(version: str, others: Sequence[str] = (), folder: Path = FOLDER) -> Path:
    """Make the environment, where it is not there; its python. Ottla is that of this tree."""
    home = folder / "-".join((version, *others))
    python = home / "bin" / "python"
    asked = requirements(version, others)
    stamp = home / ".complete"
    if stamp.exists() and stamp.read_text() == "\n".join(asked):
        return python
    if not python.exists():
        venv.create(home, with_pip=True)
    words: list[str | Path] = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    subprocess.run([*words, *asked], check=True, stdout=sys.stderr)
    (packages,) = (home / "lib").glob("python*/site-packages")
    (packages / "ottla.pth").write_text(f"{ROOT / 'src'}\n")
    stamp.write_text("\n".join(asked))
    return python
