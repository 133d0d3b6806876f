"""Where unit tests are, as CONTRIBUTING.md says."""

from pathlib import Path

from rig.paths import ROOT


def folders(path: Path) -> set[str]:
    return {each.name for each in path.iterdir() if each.is_dir() and each.name != "__pycache__"}


def test_unit_tests_have_a_folder_for_each_package() -> None:
    """And one for the public names of all packages."""
    packages = folders(ROOT / "src" / "ottla")
    assert folders(ROOT / "tests" / "unit") == packages | {"public"}
    for package in packages:
        assert any((ROOT / "tests" / "unit" / package).rglob("test_*.py")), package
