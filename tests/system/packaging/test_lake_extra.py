"""The extra `lake` alone: a load and its proof, without Spark, pandas and Java.

`python -m tests.system.packaging.by_hand_lake_extra` prints its environment's size, and how long it
takes from nothing to a proven load.
"""

import sys
from pathlib import Path

from rig.probe import free_port, wait_until_serving
from rig.process import start

from .wheels import build_wheel, run

# pip itself, which is elsewhere, would be 23 MB more.
SIZE_MAX = 330_000_000
IS_MISSING = (
    "import importlib.util, sys; sys.exit(importlib.util.find_spec(sys.argv[1]) is not None)"
)


def install(wheel: Path, folder: Path) -> Path:
    """An environment with the wheel and the extra; its folder of programs."""
    run(sys.executable, "-m", "venv", "--without-pip", "env", cwd=folder)
    programs = folder / "env" / "bin"
    pip = (sys.executable, "-m", "pip", "--python", programs / "python", "install", "-q")
    run(*pip, f"ottla[lake] @ {wheel.as_uri()}", cwd=folder)
    return programs


def load_and_verify(programs: Path, folder: Path) -> str:
    """What the verification of a load says, of a broker that runs there, too."""
    port = free_port()
    command: list[str | Path] = [programs / "ottla", "start", "--port", str(port)]
    broker = start(command, folder / "start.txt", cwd=folder)
    try:
        wait_until_serving(broker, port)
        (folder / "records.txt").write_text("".join(f"{number}\n" for number in range(1000)))
        ottla = (programs / "ottla",)
        # An empty PATH: no Java is found.
        words = {"OTTLA_BOOTSTRAP": f"127.0.0.1:{port}", "PATH": "", "JAVA_HOME": ""}
        run(*ottla, "produce", "numbers", "--file", "records.txt", cwd=folder, **words)
        run(*ottla, "lake", "load", "numbers", "--to", "table", "--here", cwd=folder, **words)
        return run(*ottla, "lake", "verify", "table", cwd=folder, **words)
    finally:
        broker.terminate()


def size_of(folder: Path) -> int:
    """Bytes of all files below `folder`."""
    return sum(file.lstat().st_size for file in folder.rglob("*") if not file.is_symlink())


def test_a_load_is_proven_without_spark_and_java(tmp_path: Path) -> None:
    """Spark's 500 MB are for those who ask for them."""
    (tmp_path / "build").mkdir()
    programs = install(build_wheel(tmp_path / "build"), tmp_path)
    assert "proven: 1,000 rows of numbers" in load_and_verify(programs, tmp_path)
    for package in ("pyspark", "pandas", "py4j"):
        run(programs / "python", "-c", IS_MISSING, package, cwd=tmp_path)
    assert size_of(tmp_path / "env") <= SIZE_MAX
