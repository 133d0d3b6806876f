"""How large the extra `lake` is, and how long a stranger waits for the first proven load.

    python -m tests.system.packaging.by_hand_lake_extra

The time begins with the wheel and no environment, and has the download of all packages in it,
unless pip has them in its cache (PIP_NO_CACHE_DIR=1).
"""

import sys
import tempfile
import time
from pathlib import Path

from .test_lake_extra import install, load_and_verify, size_of
from .wheels import build_wheel

if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "build").mkdir()
        wheel = build_wheel(folder / "build")
        began_s = time.monotonic()
        proof = load_and_verify(install(wheel, folder), folder)
        seconds, megabytes = time.monotonic() - began_s, size_of(folder / "env") / 1e6
        sys.stdout.write(f"{proof}{seconds:.0f} s from nothing to it, {megabytes:.0f} MB\n")
