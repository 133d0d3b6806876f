"""A virtual environment that begins empty and has only what a document's commands install.

Nothing is fetched: a package that is installed is linked from the environment of the suite, with
what it requires. One that no command names cannot be imported.
"""

import os
import sys
import tomllib
import venv
from importlib.metadata import Distribution, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[3]
_SCRIPT = """#!{python}
import sys
from {module} import {attribute}
sys.exit({attribute}())
"""


class Environment:
    """`python`, `bin` and the packages installed so far, by name and extras."""

    def __init__(self, folder: Path) -> None:
        venv.create(folder, with_pip=False, symlinks=True)
        self.bin = folder / "bin"
        self.python = self.bin / "python"
        version = f"python{sys.version_info.major}.{sys.version_info.minor}"
        self._packages = folder / "lib" / version / "site-packages"
        self._installed: set[tuple[str, str]] = set()

    def variables(self, **more: str) -> dict[str, str]:
        """The variables of a shell in which it is active."""
        path = f"{self.bin}{os.pathsep}{os.environ['PATH']}"
        kept = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}
        return {**kept, "PATH": path, "VIRTUAL_ENV": str(self.bin.parent), **more}

    def pip_install(self, wanted: str) -> None:
        """Do as `pip install` with one word: a name, or `./ottla` for the clone, and extras."""
        self._install(Requirement(wanted.removeprefix("./")))

    def _install(self, wanted: Requirement) -> None:
        name = canonicalize_name(wanted.name)
        for extra in ("", *sorted(wanted.extras)):
            if (name, extra) in self._installed:
                continue
            self._installed.add((name, extra))
            for line in _needs(name, extra):
                needed = Requirement(line)
                if needed.marker is None or needed.marker.evaluate({"extra": extra}):
                    self._install(needed)
            if not extra:
                self._link(distribution(name))

    def _link(self, found: Distribution) -> None:
        if found.name == "ottla":
            (self._packages / "ottla.pth").write_text(f"{ROOT / 'src'}\n")
        for top in {file.parts[0] for file in found.files or ()}:
            place = self._packages / top
            # Scripts are written below; an editable package is found by the line above.
            if top != ".." and not top.startswith("__editable__") and not place.exists():
                place.symlink_to(Path(str(found.locate_file(top))).resolve())
        for script in found.entry_points.select(group="console_scripts"):
            file = self.bin / script.name
            text = _SCRIPT.format(python=self.python, module=script.module, attribute=script.attr)
            file.write_text(text)
            file.chmod(0o755)


def _needs(name: str, extra: str) -> list[str]:
    """What a package requires besides; of this project as its own file says today."""
    if name == "ottla":
        project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
        found: list[str] = (
            project["optional-dependencies"][extra] if extra else project["dependencies"]
        )
        return found
    return distribution(name).requires or []
