"""Packs the Python packages of a load into an archive that Spark ships to its executors.

    environment/bin/python   a script that runs the worker's Python with the packages on its path
    environment/lib/…        ottla and the packages that it needs, as they are installed here

Spark unpacks it in each executor's folder (`--archives env.tar.gz#environment`). PySpark is left
out, as the executor's Spark has its own. Compiled packages need the same Python version and
platform, so the script looks for that version by name, and prints an error if it is missing.
"""

import gzip
import io
import re
import stat
import sys
import tarfile
from collections.abc import Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from itertools import chain
from pathlib import Path

import ottla
from ottla.base.errors import ErrorCode, OttlaError

_OWN_PACKAGES = ("ottla", "pyspark_ottla")
# Part of the executor's Spark, or not used by a task.
_LEFT_OUT = frozenset({"ottla", "pyspark", "py4j", "pip", "setuptools"})
# All packages that a task may need. Packages that are not installed here are left out.
_ROOTS = (
    *("click", "cramjam", "crc32c", "google-re2", "librt", "mypy-extensions", "uvloop"),
    *("numpy", "obstore", "pandas", "pyarrow", "deltalake", "pyiceberg", "fastavro", "orjson"),
    *("grpcio-tools",),
)
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
PYTHON = f"python{sys.version_info[0]}.{sys.version_info[1]}"

_SCRIPT = f"""#!/bin/sh
# The worker's own {PYTHON}, with the packages of this archive behind those of its Spark.
here=$(cd "$(dirname "$0")/.." && pwd)
python=${{OTTLA_WORKER_PYTHON:-{PYTHON}}}
if ! command -v "$python" >/dev/null 2>&1; then
  echo "this archive needs {PYTHON} on the worker; set spark.executorEnv.OTTLA_WORKER_PYTHON" >&2
  exit 127
fi
export PYTHONPATH="${{PYTHONPATH:+$PYTHONPATH:}}$here/lib"
exec "$python" "$@"
"""


def ship(path: str) -> list[str]:
    """Write the archive to `path`, and return the names and versions of its packages.

    Raises OttlaError if it cannot be written.
    """
    found = sorted(_required().values(), key=lambda one: one.metadata["Name"].lower())
    try:
        with (
            open(path, "wb") as file,
            # A fixed time in the archive, so that the same packages give the same bytes.
            gzip.GzipFile("", "wb", 3, file, mtime=0) as packed,
            tarfile.open(fileobj=packed, mode="w") as archive,
        ):
            for name in ("python", PYTHON):
                _add(archive, f"bin/{name}", _SCRIPT.encode(), runs=True)
            for source, name in chain(_own_files(), *map(_files, found)):
                runs = bool(source.stat().st_mode & stat.S_IXUSR)
                _add(archive, f"lib/{name}", source.read_bytes(), runs=runs)
    except OSError as error:
        raise OttlaError(
            ErrorCode.KAFKA_STORAGE_ERROR, f"{path} can't be written: {error.strerror or error}"
        ) from error
    return [
        f"ottla {ottla.__version__}",
        *(f"{one.metadata['Name']} {one.version}" for one in found),
    ]


def _required() -> dict[str, Distribution]:
    """Return the installed packages of `_ROOTS` and their dependencies, by name."""
    found: dict[str, Distribution] = {}
    waiting = list(_ROOTS)
    while waiting:
        name = re.sub(r"[-_.]+", "-", waiting.pop()).lower()
        if name in found or name in _LEFT_OUT:
            continue
        try:
            found[name] = distribution(name)
        except PackageNotFoundError:
            continue  # It is an extra, or is only needed on another platform.
        for requirement in found[name].requires or ():
            match = _NAME.match(requirement)
            if match and "extra ==" not in requirement:
                waiting.append(match[0])
    return found


def _own_files() -> Iterator[tuple[Path, str]]:
    """Yield the files of ottla as this process imports them, perhaps from a source folder."""
    home = Path(ottla.__file__).parent.parent
    for package in _OWN_PACKAGES:
        for source in sorted((home / package).rglob("*")):
            if source.is_file() and "__pycache__" not in source.parts:
                yield source, source.relative_to(home).as_posix()
    for source in sorted(home.glob("*__mypyc*")):
        if source.name.startswith("ottla"):
            yield source, source.name


def _files(one: Distribution) -> Iterator[tuple[Path, str]]:
    """Yield the installed files of a package, without its executables."""
    for file in one.files or ():
        source = Path(str(one.locate_file(file)))
        if ".." not in file.parts and "__pycache__" not in file.parts and source.is_file():
            yield source, file.as_posix()


def _add(archive: tarfile.TarFile, name: str, content: bytes, *, runs: bool) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(content), 0o755 if runs else 0o644
    archive.addfile(entry, io.BytesIO(content))
