"""What the documents say of the code is what the code says."""

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest
from verify.quorums.__main__ import SCENES, failures_table

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "ottla"
PAGES = sorted(
    [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")], key=lambda path: path.as_posix()
)
_LINK = re.compile(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)")
_MODULE = re.compile(r"`((?:[a-z_0-9]+/)*[a-z_0-9]+(?:\.py|/))`")


def tables() -> ModuleType:
    """The script that makes the tables, as a module."""
    spec = importlib.util.spec_from_file_location("docs_tables", ROOT / "docs" / "tables.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("page", ["reference/differences.md", "reference/api-versions.md"])
def test_tables_made_from_the_code_are_up_to_date(page: str) -> None:
    """`python docs/tables.py` would change nothing."""
    text = (ROOT / "docs" / page).read_text()
    assert "<!-- begin " in text
    assert tables().updated(text) == text


def test_tables_say_what_the_code_says() -> None:
    """A setting that differs, and the versions of an API, as literals."""
    made = tables()
    assert "| `log.flush.policy` | `group` | Kafka has no such setting" in (
        made.settings_that_differ()
    )
    assert "| 1 | Fetch | 4 to 18 | 4 to 18 |" in made.apis_served()
    assert "`StreamsGroupHeartbeat (88)`" in made.apis_not_served()
    assert "`config.providers`" in made.settings_refused()


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_links_lead_somewhere(page: Path) -> None:
    """Every relative link of every document names a file or folder that exists."""
    for target in _LINK.findall(page.read_text()):
        assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_the_architecture_names_only_what_exists() -> None:
    """Every module and folder in ARCHITECTURE.md is there under src/ottla, or in the root."""
    named = _MODULE.findall((ROOT / "ARCHITECTURE.md").read_text())
    assert len(named) > 60
    missing = [name for name in named if not ((SOURCE / name).exists() or (ROOT / name).exists())]
    assert missing == []


def test_the_architecture_leaves_no_package_out() -> None:
    """Every package under src/ottla stands in the picture of the layers."""
    page = (ROOT / "ARCHITECTURE.md").read_text()
    picture = page.partition("## Layers")[2].partition("## ")[0]
    packages = {f"{path.parent.relative_to(SOURCE)}/" for path in SOURCE.glob("*/__init__.py")}
    assert sorted(packages - set(re.findall(r"\b[a-z]+/", picture))) == []


def test_tolerated_failures_are_those_that_the_command_prints() -> None:
    """The table on the page is what `python -m verify.quorums` prints."""
    page = (ROOT / "docs" / "explanation" / "replication.md").read_text()
    assert "\n".join(failures_table()) in page
    assert all(f"{scene.name:<40}  ISR" in page for scene in SCENES)
