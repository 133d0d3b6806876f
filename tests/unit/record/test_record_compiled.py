"""The compiled form, the plain form, and the guard between them."""

import json
import os
import shutil
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import pytest

import ottla
from ottla import _compiled

PACKAGE = Path(ottla.__file__).parent
HERE = Path(__file__).parent
SHOW = """
import sys, warnings
warnings.simplefilter("always")
sys.path.insert(0, sys.argv[1])
import ottla
import ottla._compiled as compiled
compiled.install()
from ottla.record import codec, walk
print(ottla.__file__)
print(compiled.reason())
print(compiled.status())
print(getattr(codec, "EDITED", "as it was"))
"""

PLAIN_RUN = """
import sys
import ottla._compiled as compiled
compiled.install()
import pytest
folder = sys.argv[1]
code = pytest.main(["-q", "-p", "no:ottla", f"--ignore={folder}/test_record_compiled.py", folder])
assert sys.modules["ottla.record.codec"].__file__.endswith(".py")
assert not any(compiled.status().values())
sys.exit(code)
"""


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the package with its extensions, to be spoilt."""
    for name in ("__init__.py", "_compiled.py", "base", "record", "storage", _compiled.MANIFEST):
        source = PACKAGE / name
        if source.is_dir():
            shutil.copytree(source, tmp_path / "ottla" / name)
        elif source.exists():
            (tmp_path / "ottla").mkdir(exist_ok=True)
            shutil.copy(source, tmp_path / "ottla" / name)
    for extension in PACKAGE.parent.glob("ottla__mypyc.*"):
        shutil.copy(extension, tmp_path)
    return tmp_path


def show(folder: Path, **environment: str) -> tuple[str, dict[str, bool], str, str]:
    """Why extensions are passed over, what runs compiled, the mark of the edit, and warnings."""
    inherited = {k: v for k, v in os.environ.items() if k not in ("OTTLA_PURE", "PYTHONPATH")}
    done = subprocess.run(
        [sys.executable, "-c", SHOW, str(folder)],
        capture_output=True,
        text=True,
        check=True,
        env=inherited | environment,
        timeout=60,
    )
    where, reason, status, edit = done.stdout.splitlines()
    assert Path(where) == folder / "ottla" / "__init__.py"
    found: dict[str, bool] = json.loads(status.replace("'", '"').lower())
    return reason, found, edit, done.stderr


def up_to_date() -> None:
    """Skip where there is no build to spoil: the tests below begin with one that is current."""
    if not (PACKAGE / _compiled.MANIFEST).exists():
        pytest.skip("no compiled codec here: no C compiler, or `make venv` has not run")
    for name, digest in json.loads((PACKAGE / _compiled.MANIFEST).read_text()).items():
        source = PACKAGE.joinpath(*name.split(".")[1:]).with_suffix(".py")
        if sha256(source.read_bytes()).hexdigest() != digest:
            pytest.skip(f"{name} was edited since it was compiled; run setup.py build_ext")


def test_the_build_is_what_runs(copy: Path) -> None:
    """With a manifest that holds, the extensions are imported, and nothing is said."""
    up_to_date()
    assert show(copy) == (
        "",
        {
            "ottla.record.codec": True,
            "ottla.record.header": True,
            "ottla.record.walk": True,
        },
        *DULL,
    )


DULL = ("as it was", "")
PLAIN = {
    "ottla.record.codec": False,
    "ottla.record.header": False,
    "ottla.record.walk": False,
}


def test_an_edited_source_wins_over_its_stale_extension(copy: Path) -> None:
    """The edit is what runs, in every compiled module, and one warning says so."""
    up_to_date()
    with (copy / "ottla" / "record" / "codec.py").open("a") as source:
        source.write("\nEDITED = 'by hand'\n")
    reason, status, edit, warned = show(copy)
    assert reason == "ottla.record.codec was changed since it was compiled"
    assert edit == "by hand"
    assert PLAIN.items() <= status.items()
    assert warned.count("RuntimeWarning") == 1


def test_an_edit_elsewhere_makes_every_extension_stale(copy: Path) -> None:
    """Extensions call each other past the import system, so all go or none."""
    up_to_date()
    with (copy / "ottla" / "record" / "builder.py").open("a") as source:
        source.write("\nEDITED = 'by hand'\n")
    reason, status, _, _ = show(copy)
    assert reason == "ottla.record.builder was changed since it was compiled"
    assert PLAIN.items() <= status.items()


def test_an_extension_without_a_manifest_is_not_trusted(copy: Path) -> None:
    """A build that broke off, or an extension from who knows where."""
    up_to_date()
    (copy / "ottla" / _compiled.MANIFEST).unlink()
    reason, status, _, warned = show(copy)
    assert reason == "nothing says what extensions were compiled from"
    assert PLAIN.items() <= status.items()
    assert warned.count("RuntimeWarning") == 1


def test_an_extension_that_the_manifest_does_not_name_is_not_trusted(copy: Path) -> None:
    """Left over from a build of another set of modules."""
    up_to_date()
    manifest = copy / "ottla" / _compiled.MANIFEST
    digests = json.loads(manifest.read_text())
    del digests["ottla.record.walk"]
    manifest.write_text(json.dumps(digests))
    reason, status, _, _ = show(copy)
    assert reason == "ottla.record.walk has an extension that the last build did not make"
    assert PLAIN.items() <= status.items()


def test_the_plain_form_runs_when_it_is_asked_for(copy: Path) -> None:
    """OTTLA_PURE=1, without a warning: it was a wish."""
    up_to_date()
    reason, status, _, warned = show(copy, OTTLA_PURE="1")
    assert reason == "OTTLA_PURE is set"
    assert PLAIN.items() <= status.items()
    assert warned == ""


def test_where_nothing_was_built_nothing_is_said(copy: Path) -> None:
    """A machine without a C compiler runs the plain form and is not nagged about it."""
    (copy / "ottla" / _compiled.MANIFEST).unlink(missing_ok=True)
    for extension in [*copy.rglob("*.so"), *copy.rglob("*.pyd")]:
        extension.unlink()
    _, status, edit, warned = show(copy)
    assert (status, edit, warned) == ({}, *DULL)


def test_the_same_tests_hold_for_the_plain_form() -> None:
    """One source for both forms: what the compiled one passes, the plain one passes."""
    done = subprocess.run(
        [sys.executable, "-c", PLAIN_RUN, str(HERE)],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"OTTLA_PURE": "1", "PYTHONDONTWRITEBYTECODE": "1"},
        timeout=280,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("environment", "reason"),
    [
        ({"CC": "no-such-compiler", "OTTLA_PURE": ""}, "there is no C compiler (no-such-compiler)"),
        ({"OTTLA_PURE": "1"}, "OTTLA_PURE is set"),
    ],
)
def test_a_build_without_a_compiler_succeeds_and_says_so(
    tmp_path: Path, environment: dict[str, str], reason: str
) -> None:
    """The plain form of the same source runs; what an earlier build said is forgotten."""
    package = tmp_path / "src" / "ottla"
    package.mkdir(parents=True)
    manifest = package / _compiled.MANIFEST
    manifest.write_text("{}")
    shutil.copy(HERE.parents[2] / "setup.py", tmp_path)
    done = subprocess.run(
        [sys.executable, "setup.py", "-q", "build_ext", "--inplace"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | environment,
        timeout=60,
    )
    assert f"ottla: {reason}; the plain form of the codec will run" in done.stderr
    assert not manifest.exists()
