"""What the documents say of the code is what the code says."""

import ast
import importlib
import importlib.util
import re
import textwrap
import tomllib
from pathlib import Path
from types import ModuleType

import pytest
from verify.quorums.__main__ import SCENES, failures_table

from ottla.base.errors import ErrorCode

ROOT = Path(__file__).resolve().parents[3]
SOURCE = ROOT / "src" / "ottla"
PAGES = sorted(
    [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")], key=lambda path: path.as_posix()
)
_LINK = re.compile(r"\]\(([^)#:\s]*)(?:#([^)\s]*))?\)")
_PYTHON = re.compile(r"^ *```python[^\n]*\n(.*?)^ *```$", re.DOTALL | re.MULTILINE)
_CODE = re.compile(r"^ *```.*?^ *```$", re.DOTALL | re.MULTILINE)
_HEADING = re.compile(r"^#{1,6} (.+)$", re.MULTILINE)
_MODULE = re.compile(r"`((?:[a-z_0-9]+/)*[a-z_0-9]+(?:\.py|/))`")


def script(name: str) -> ModuleType:
    """A script of docs/, as a module."""
    spec = importlib.util.spec_from_file_location(f"docs_{name}", ROOT / "docs" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def tables() -> ModuleType:
    """The script that makes the tables."""
    return script("tables")


def anchors(text: str) -> set[str]:
    """The addresses of a page's headings, as GitHub makes them."""
    found: list[str] = []
    for heading in _HEADING.findall(_CODE.sub("", text)):
        plain = re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")
        found.append(plain if plain not in found else f"{plain}-{found.count(plain)}")
    return set(found)


@pytest.mark.parametrize("page", ["differences", "api-versions", "limits"])
def test_tables_made_from_the_code_are_up_to_date(page: str) -> None:
    """`python docs/tables.py` would change nothing."""
    text = (ROOT / "docs" / "reference" / f"{page}.md").read_text()
    assert "<!-- begin " in text
    assert tables().updated(text) == text


def test_tables_say_what_the_code_says() -> None:
    """A setting that differs, and the versions of an API, as literals."""
    made = tables()
    assert "| `log.flush.policy` | `group` | Kafka has no such setting" in (
        made.settings_that_differ()
    )
    assert "| 1 | Fetch | 4 to 18 | 4 to 18 |" in made.apis_served()
    assert "`config.providers`" in made.settings_refused()


def test_pages_of_reference_are_made_from_the_code() -> None:
    """`python docs/reference.py` would change nothing."""
    reference = script("reference")
    for name, made in reference.MADE.items():
        assert (ROOT / "docs" / "reference" / name).read_text() == made().rstrip() + "\n", name


def test_reference_leaves_out_no_variable_and_no_error() -> None:
    """Each OTTLA_ name in the source is explained, and each error code; none that is gone."""
    reference = script("reference")
    assert reference.variables_in_source() == set(reference.ENVIRONMENT)
    said = tomllib.loads((ROOT / "docs" / "errors.toml").read_text())
    assert set(said) == {code.name for code in ErrorCode}


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page: Path) -> None:
    """Every relative link names a file or folder that exists, and a heading on its page."""
    for target, anchor in _LINK.findall(_CODE.sub("", page.read_text())):
        found = page.parent / target if target else page
        assert found.exists(), f"{page.name} links to {target}"
        if anchor and found.suffix == ".md":
            assert anchor in anchors(found.read_text()), f"{page.name} links to {target}#{anchor}"


def test_addresses_are_those_that_github_makes() -> None:
    """Lower case, without marks, `-` for blanks; a heading that comes twice gets a number."""
    text = "# A `b.c`: (d), e-f\n\n```sh\n# no heading\n```\n## Twice\n## Twice\n"
    assert anchors(text) == {"a-bc-d-e-f", "twice", "twice-1"}


def test_every_page_is_two_clicks_from_the_readme() -> None:
    """The README, docs/README.md, and what they link to, are all pages but decision records."""
    near = {ROOT / "README.md"}
    for _ in range(2):
        near |= {
            (page.parent / target).resolve()
            for page in near
            if page.suffix == ".md"
            for target, _ in _LINK.findall(page.read_text())
            if target
        }
    far = {page for page in PAGES if "adr" not in page.parts} - near
    assert sorted(page.relative_to(ROOT).as_posix() for page in far) == []


def test_python_on_the_pages_is_python() -> None:
    """Every block compiles, and the names that it takes from ottla exist."""
    count = 0
    for page in PAGES:
        for text in _PYTHON.findall(page.read_text()):
            tree = ast.parse(textwrap.dedent(text))
            count += 1
            for node in ast.walk(tree):
                if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("ottla"):
                    module = importlib.import_module(node.module or "")
                    missing = [one.name for one in node.names if not hasattr(module, one.name)]
                    assert missing == [], page.name
                if (
                    isinstance(node, ast.Attribute)
                    and isinstance(node.value, ast.Attribute)
                    and ast.unparse(node.value) in ("ottla.lake", "ottla.testing", "ottla.client")
                ):
                    module = importlib.import_module(ast.unparse(node.value))
                    assert hasattr(module, node.attr), (page.name, node.attr)
    assert count > 10


def test_decision_records_are_numbered_without_gaps_or_twins() -> None:
    """0001, 0002 and so on, and each has its number in its title."""
    records = sorted((ROOT / "docs" / "developers" / "adr").glob("*.md"))
    numbers = [record.name[:4] for record in records]
    assert numbers == [f"{number:04}" for number in range(1, len(records) + 1)]
    titles = [record.read_text().partition("\n")[0] for record in records]
    wrong = [
        (record.name, title)
        for record, title in zip(records, titles, strict=True)
        if not title.startswith(f"# {record.name[:4]}. ")
    ]
    assert wrong == []


def test_the_architecture_names_only_what_exists() -> None:
    """Every module and folder in ARCHITECTURE.md is there under src/ottla, or in the root."""
    named = _MODULE.findall((ROOT / "ARCHITECTURE.md").read_text())
    assert len(named) > 60
    missing = [name for name in named if not ((SOURCE / name).exists() or (ROOT / name).exists())]
    assert missing == []


def test_the_architecture_names_every_package_of_the_second_level() -> None:
    """Each folder below a package of ottla is named with the package before it."""
    named = set(re.findall(r"`([a-z_]+/[a-z_]+/)`", (ROOT / "ARCHITECTURE.md").read_text()))
    found = {f"{path.parent.relative_to(SOURCE)}/" for path in SOURCE.glob("*/*/__init__.py")}
    assert sorted(found - named) == []


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
