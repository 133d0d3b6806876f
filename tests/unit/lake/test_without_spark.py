"""What needs no Spark runs where none is installed, and what needs it says how to get it."""

import subprocess
import sys

import click
import pytest

import ottla.lake
from ottla.base.errors import OttlaError, WrongWords
from ottla.cli.lake import lake
from ottla.lake.job.session import SparkSettings, checked_settings
from ottla.lake.model.option import declared

# As with the extra `lake` alone: an import of these fails.
WITHOUT_SPARK = """
import sys
sys.modules.update(dict.fromkeys(("pyspark", "py4j")))
"""
IMPORTS = """
import importlib, pkgutil, ottla.cli.lake, ottla.lake
for module in pkgutil.walk_packages(ottla.cli.lake.__path__, "ottla.cli.lake."):
    importlib.import_module(module.name)
for module in pkgutil.walk_packages(ottla.lake.__path__, "ottla.lake."):
    if module.name not in SPARKS_OWN and "._" not in module.name:
        importlib.import_module(module.name)
"""
# Modules that only Spark imports.
SPARKS_OWN = ("ottla.lake.edges.datasource", "ottla.lake.edges.sink")
REFUSED = """
from ottla.base.errors import OttlaError
import ottla.lake
try:
    ottla.lake.load("t", sys.argv[1], bootstrap="127.0.0.1:1")
except OttlaError as error:
    print(error)
"""


def printed(program: str, *words: str) -> str:
    """What a program prints that can't import Spark; it must succeed."""
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_SPARK + program, *words],
        check=False,
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_only_spark_s_own_modules_import_spark() -> None:
    """All of the rest is imported without it."""
    printed(f"SPARKS_OWN = {SPARKS_OWN}\n" + IMPORTS)


def test_a_module_is_imported_without_the_others() -> None:
    """A process that reads one damaged file does not take a second to start."""
    program = "import sys, ottla.lake.check.damaged_files; print('ottla.client' in sys.modules)"
    assert printed(program) == "False\n"


def test_a_load_without_spark_names_what_to_install_and_makes_nothing(tmp_path) -> None:
    """Before the brokers are asked."""
    target = tmp_path / "table"
    told = printed(REFUSED, str(target))
    assert "pip install 'ottla[spark]'" in told
    assert "--here" in told
    assert not target.exists()


def test_each_command_that_takes_a_master_takes_here() -> None:
    """One name in every verb."""
    context = click.Context(lake, help_option_names=["-h", "--help"])
    commands = [lake.get_command(context, name) for name in lake.list_commands(context)]
    flags = {
        command.name: {flag for option in command.get_params(context) for flag in option.opts}
        for command in commands
        if command is not None
    }
    with_master = {name for name, found in flags.items() if "--master" in found}
    assert {"load", "follow", "changelog", "compact", "replace", "run", "verify"} <= with_master
    assert {name for name, found in flags.items() if "--here" in found} == with_master


def test_each_function_that_runs_on_spark_takes_a_master() -> None:
    """The same name in Python."""
    kinds = [getattr(ottla.lake, name) for name in ottla.lake.__all__ if name.endswith("Options")]
    on_spark = {kind.__name__ for kind in kinds if "spark_session" in declared(kind)}
    verbs = ("Load", "Follow", "Changelog", "Compact", "Replace", "Verify")
    assert {f"{verb}Options" for verb in verbs} == on_spark
    assert {kind.__name__ for kind in kinds if "master" in declared(kind)} == on_spark


def test_a_master_that_is_none_is_refused() -> None:
    with pytest.raises(OttlaError, match="no master of Spark"):
        checked_settings(SparkSettings("there"), has_own=True)
    assert checked_settings(SparkSettings("here", name="n"), has_own=False).is_here
    assert not checked_settings(SparkSettings(), has_own=True).is_here


@pytest.mark.parametrize("verb", ["load", "follow", "changelog"])
def test_refused_words_leave_no_table_behind(verb: str, tmp_path) -> None:
    """They are checked before anything is made, or brokers are asked."""
    target = tmp_path / "table"
    run = getattr(ottla.lake, verb)
    with pytest.raises(WrongWords, match="no master of Spark"):
        run("t", str(target), bootstrap="127.0.0.1:1", master="there")
    with pytest.raises(WrongWords, match="did you mean master"):
        run("t", str(target), mastr="here")
    assert not target.exists()
