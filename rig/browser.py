"""Chromium, with which tests look at the console's pages: found, or installed for them.

Debian's package is taken where it is installed, or where this is root and can install it; else the
program that an npm package ships, unpacked into `.rig`.
"""

import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

from rig.paths import RIG

_NAMES = ("chromium", "chromium-browser", "google-chrome")
_NPM = "@sparticuz/chromium@153"
_FOLDER = RIG / "chromium"


@cache
def chromium() -> Path | None:
    """The program; None where there is none."""
    for name in _NAMES:
        if found := shutil.which(name):
            return Path(found)
    unpacked = _FOLDER / "chromium"
    return unpacked if unpacked.exists() else None


def install() -> None:
    """Install Chromium unless it is here; say so where that is impossible."""
    if chromium() is not None:
        return
    if not (_by_apt() or _by_npm()):
        print("rig: no Chromium, so that the tests of the console's pages are skipped", flush=True)
    chromium.cache_clear()


def _by_apt() -> bool:
    apt = shutil.which("apt-get")
    if apt is None or os.geteuid() != 0:
        return False
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    command = [apt, "install", "-y", "-qq", "--no-install-recommends", "chromium"]
    for words in (command, [apt, "update", "-qq"], command):
        done = subprocess.run(words, check=False, env=env, capture_output=True)
        if words is command and done.returncode == 0:
            return True
    return False


def _by_npm() -> bool:
    npm, node = shutil.which("npm"), shutil.which("node")
    if npm is None or node is None:
        return False
    _FOLDER.mkdir(parents=True, exist_ok=True)
    program = (
        "import('@sparticuz/chromium').then(async (m) =>"
        " console.log(await m.default.executablePath()))"
    )
    # It unpacks the program into the folder for temporary files.
    env = {**os.environ, "TMPDIR": str(_FOLDER)}
    for words in ([npm, "install", "--silent", "--no-audit", _NPM], [node, "-e", program]):
        done = subprocess.run(words, check=False, cwd=_FOLDER, env=env, capture_output=True)
        if done.returncode != 0:
            return False
    return (_FOLDER / "chromium").exists()


if __name__ == "__main__":
    install()
    print(f"rig: Chromium: {chromium()}")
    sys.exit(0)
