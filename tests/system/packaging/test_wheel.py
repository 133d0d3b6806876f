"""What users install: the wheel has the types, the public names and nothing of the repository.

The sources have all of this, too, but nobody installs them: a file that the build leaves out, or
an import that only the repository's folders satisfy, shows here alone.
"""

import subprocess
import sys
import zipfile
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

import pytest
from rig.paths import ROOT

import ottla

from .wheels import build_wheel, run

NAMES = ROOT / "tests/unit/public/names.txt"
TELL_NAMES = """
import runpy, sys, ottla
print(ottla.__file__, *runpy.run_path(sys.argv[1])["public_names"](), sep="\\n")
"""
TELL_REWRITTEN = """
import sys

def test_with_a_broker(ottla_broker):
    loaders = {name: type(module.__loader__).__name__ for name, module in sys.modules.items()
               if name.partition(".")[0] == "ottla"}
    rewritten = [name for name, loader in loaders.items() if loader == "AssertionRewritingHook"]
    print(len(loaders), *rewritten)
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of these sources, built with the tools that are here, the codec not compiled."""
    folder = tmp_path_factory.mktemp("wheel")
    build_wheel(folder)
    # What an earlier build of other sources left there.
    (built_earlier,) = (folder / "build").glob("lib*/ottla/record")
    (built_earlier / "codec.stale.so").touch()
    return build_wheel(folder)


@pytest.fixture(scope="module")
def installed(wheel: Path) -> Path:
    """The interpreter of an environment that has the wheel and nothing else."""
    folder = wheel.parent.parent
    run(sys.executable, "-m", "venv", "--without-pip", "env", cwd=folder)
    python = folder / "env" / "bin" / "python"
    pip = (sys.executable, "-m", "pip", "--python", python, "install", "-q", "--no-compile")
    run(*pip, "--no-index", "--no-deps", wheel, cwd=folder)
    return python


def type_errors(installed: Path, *files: Path) -> list[str]:
    """What mypy, strict and without settings of ours, says of programs that use the wheel."""
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--config-file="]
    command += ["--python-executable", str(installed), "--cache-dir", str(installed) + "-types"]
    done = subprocess.run(
        [*command, *map(str, files)],
        # Not in the repository, whose settings and sources mypy would find.
        cwd=installed.parent,
        check=False,
        capture_output=True,
        text=True,
    )
    return (done.stdout + done.stderr).splitlines()


# Their annotations name the type of a result.
GENERIC = ("Task",)


def uses(lines: list[str]) -> Iterator[str]:
    """A program that names each public name, and each member of its classes."""
    modules = ("ottla.client.sync", "ottla.client", "ottla.lake", "ottla.testing")
    split = [(m, line[len(m) + 1 :]) for line in lines for m in modules if line.startswith(m + ".")]
    by_line = {f"{module}.{rest}": (module, rest) for module, rest in reversed(split)}
    yield from (f"import {module}" for module in modules)
    pairs = [by_line[line] for line in lines]
    for number, ((module, name), group) in enumerate(
        groupby(pairs, key=lambda pair: (pair[0], pair[1].split(".")[0]))
    ):
        members = [rest.split(".", 1)[1] for _, rest in group if "." in rest]
        yield f"print({module}.{name})"
        if members:
            kind = f"{module}.{name}" + ("[object]" if name in GENERIC else "")
            yield f"def use{number}(one: {kind}) -> None:"
            yield from (f"    print(one.{member})" for member in members)


def test_the_wheel_says_that_it_is_typed_and_has_nothing_of_the_repository(wheel: Path) -> None:
    """Without `py.typed` a type checker takes every name for Any."""
    with zipfile.ZipFile(wheel) as content:
        names = content.namelist()
    assert [name for name in names if name.endswith("ottla/py.typed")] != []
    # Spark finds the data source by it.
    assert [name for name in names if name.endswith("/pyspark_ottla/__init__.py")] != []
    assert [name for name in names if name.startswith(("tests/", "rig/", "bench/"))] == []


def test_the_wheel_has_nothing_of_an_earlier_build(wheel: Path) -> None:
    """An extension of other sources would be imported in place of the module."""
    with zipfile.ZipFile(wheel) as content:
        assert [name for name in content.namelist() if "stale" in name] == []


def test_the_version_says_whether_the_codec_is_compiled(installed: Path) -> None:
    """pip does not show what a build says; the plain form is ten times slower."""
    (site,) = installed.parent.parent.glob("lib/python*/site-packages")
    environment = {"PYTHONPATH": str(site), "OTTLA_PURE": ""}
    command = (sys.executable, "-m", "ottla.cli", "--version")
    assert run(*command, cwd=installed.parent, **environment) == (
        f"ottla {ottla.__version__}, codec plain, which is slower: Ottla was installed without a C "
        "compiler, or without mypyc\n"
    )


def test_examples_are_typed_against_the_wheel(installed: Path) -> None:
    """As a user's editor sees them."""
    assert type_errors(installed, *sorted((ROOT / "examples").glob("*.py"))) == []


def test_every_public_name_is_there_for_a_type_checker(installed: Path) -> None:
    """Also the calls of `sync.Admin`, which the wheel's users cannot look up in the sources."""
    program = installed.with_name("every_name.py")
    program.write_text("\n".join(uses(NAMES.read_text().splitlines())) + "\n")
    assert type_errors(installed, program) == []


def test_a_mistake_is_seen_by_a_type_checker(installed: Path) -> None:
    """Were the names Any, the tests above would accept everything."""
    program = installed.with_name("mistakes.py")
    program.write_text(
        "from ottla.client import ProducerOptions, sync\n"
        'admin = sync.Admin("localhost:9092")\n'
        "admin.topics.create(5)\n"
        'admin.topics.crate("t")\n'
        'admin.configs.describe("subject", "t")\n'
        'sync.Producer("localhost:9092").send(5, b"value")\n'
        'ProducerOptions(compression="zip")\n'
        'count: str = admin.topics.describe_all("t")[0].partitions[0].leader\n'
    )
    told = type_errors(installed, program)
    lines = [int(line.split(":")[1]) for line in told if ": error:" in line]
    assert lines == [3, 4, 5, 6, 7, 8], told


def test_the_wheel_has_the_names_of_the_list(installed: Path) -> None:
    """Asked at run time, of the installed files."""
    (site,) = installed.parent.parent.glob("lib/python*/site-packages")
    told = run(
        *(sys.executable, "-c", TELL_NAMES, NAMES.with_name("test_public_names.py")),
        cwd=installed.parent,
        PYTHONPATH=str(site),
        OTTLA_PURE="1",
    )
    where, *names = told.splitlines()
    assert where.startswith(str(site))
    assert names == NAMES.read_text().splitlines()


def test_pytest_rewrites_the_plugin_and_no_module_of_the_broker(installed: Path) -> None:
    """pytest marks all that the distribution of a plugin has: seconds for the first broker."""
    (site,) = installed.parent.parent.glob("lib/python*/site-packages")
    (installed.parent / "test_it.py").write_text(TELL_REWRITTEN)
    told = run(
        *(sys.executable, "-m", "pytest", "-q", "-s", "-p", "no:cacheprovider", "test_it.py"),
        cwd=installed.parent,
        PYTHONPATH=str(site),
        PYTHONDONTWRITEBYTECODE="1",
        OTTLA_PURE="1",
    )
    count, *rewritten = told.splitlines()[0].split()
    assert int(count) > 500
    assert rewritten == ["ottla._compiled", "ottla", "ottla.testing", "ottla.testing.plugin"]
