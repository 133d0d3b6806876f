"""Compiles the hot modules with mypyc, and the loops of the row hash, where that is possible.

Everything else is in pyproject.

Without mypyc or a C compiler, or with OTTLA_PURE=1, the build succeeds and says that the plain
form of the same source will run. See docs/developers/adr/0003-compiled-codec-and-its-guard.md.
"""

import hashlib
import importlib
import json
import os
import shutil
import sys
import sysconfig
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build import build
from setuptools.command.build_ext import build_ext
from setuptools.errors import CCompilerError, ExecError, PlatformError

ROOT = Path(__file__).parent
MODULES = (
    "ottla.record.arrival",
    "ottla.record.builder",
    "ottla.record.claims",
    "ottla.record.codec",
    "ottla.record.control",
    "ottla.record.header",
    "ottla.record.reader",
    "ottla.record.key_map",
    "ottla.record.validation",
    "ottla.record.walk",
    "ottla.storage.index.offset_index",
    "ottla.storage.index.time_index",
    "ottla.storage.segment.indexes",
)
# Loops in C that numpy does where they were not compiled: a failure is no failure of the build.
IN_C = Extension(
    "ottla.lake._row_sums",
    ["src/ottla/lake/_row_sums.c"],
    extra_compile_args=[] if os.name == "nt" else ["-O3"],
    optional=True,
)
MANIFEST = "_compiled.json"
# Stands for the extensions until they are known: to make their C code takes seconds of mypy,
# which a build that only asks for the version should not pay.
PLACEHOLDER = Extension("ottla._compiled_codec", [])


def source(module: str) -> Path:
    """The file of `module`, relative to the root as mypyc wants it."""
    return Path("src", *module.split(".")).with_suffix(".py")


def reason_not_to_compile() -> str:
    """Why the plain form has to do, or nothing."""
    if os.environ.get("OTTLA_PURE", "") not in ("", "0"):
        return "OTTLA_PURE is set"
    try:
        importlib.import_module("mypyc.build")
    except ImportError:
        return "mypyc is not installed"
    compiler = os.environ.get("CC") or sysconfig.get_config_var("CC")
    if compiler and not shutil.which(compiler.split()[0]):
        return f"there is no C compiler ({compiler.split()[0]})"
    return ""


class FreshBuild(build):
    """`build` that keeps nothing of earlier ones: a wheel would pack their files, too."""

    def run(self) -> None:
        shutil.rmtree(Path(self.build_lib, "ottla"), ignore_errors=True)
        super().run()


class BuildCodec(build_ext):
    """`build_ext` whose extensions come from mypyc, and whose failure is no failure."""

    def finalize_options(self) -> None:
        self.plain = reason_not_to_compile()
        self.distribution.ext_modules = [] if self.plain else self._extensions()
        super().finalize_options()
        self.extensions = self.distribution.ext_modules

    def run(self) -> None:
        self._forget()
        if not self.plain:
            try:
                super().run()
            except (CCompilerError, ExecError, PlatformError, OSError) as error:
                self.plain = f"the C compiler failed ({str(error)[:200]})"
                self.extensions = []
        if self.plain:
            sys.stderr.write(f"ottla: {self.plain}; the plain form of the codec will run\n")
            return
        digests = {m: hashlib.sha256(source(m).read_bytes()).hexdigest() for m in MODULES}
        for folder in self._packages():
            (folder / MANIFEST).write_text(json.dumps(digests, indent=1) + "\n", encoding="ascii")

    def get_outputs(self) -> list[str]:
        if self.plain:
            return []
        manifest = Path(self.build_lib, "ottla", MANIFEST)
        return [*super().get_outputs(), str(manifest)]

    def _extensions(self) -> list[Extension]:
        os.environ.setdefault("MYPYPATH", "src")
        paths = [str(source(module)) for module in MODULES]
        try:
            compiled: list[Extension] = importlib.import_module("mypyc.build").mypycify(
                paths, opt_level="3", debug_level="0", group_name="ottla"
            )
        except SystemExit:
            # mypy has printed what it does not like; that is the tests' business to refuse.
            self.plain = "mypyc refused the sources"
            return []
        return [*compiled, IN_C]

    def _packages(self) -> list[Path]:
        """Where the package stands that the extensions are built into."""
        folders = [Path(self.build_lib, "ottla")]
        if self.inplace or getattr(self, "editable_mode", False):
            folders.append(ROOT / "src" / "ottla")
        return [folder for folder in folders if folder.is_dir()]

    def _forget(self) -> None:
        """Until this build is done, no extension is known to be what its source says."""
        for folder in self._packages():
            (folder / MANIFEST).unlink(missing_ok=True)


setup(ext_modules=[PLACEHOLDER], cmdclass={"build": FreshBuild, "build_ext": BuildCodec})
