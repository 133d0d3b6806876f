"""Each point of Kafka's design papers is shown by a test that cites it, and told in a document."""

import importlib.util
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parents[3]
CARRIED = [f"P{number}" for number in range(1, 43)]


def papers() -> ModuleType:
    """The script that makes docs/developers/papers.md, as a module."""
    spec = importlib.util.spec_from_file_location(
        "docs_papers", ROOT / "docs" / "developers" / "papers.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_point_is_cited_by_a_test() -> None:
    """A point without a test is a promise without a proof."""
    found = papers().citations()
    assert [point for point in CARRIED if not found.get(point)] == []
    assert sorted(set(found) - set(CARRIED)) == []


def test_every_point_is_shown_from_end_to_end() -> None:
    """Of each a unit test is not all: whole brokers, clients or loads show it, too."""
    found = papers().citations()
    folders = {point: set().union(*(file.split("/") for file in found[point])) for point in CARRIED}
    real = {"papers", "client", "clients", "lake", "replication", "cluster"}
    assert [point for point in CARRIED if not folders[point] & real] == []


def test_the_search_knows_a_citation_when_it_sees_one() -> None:
    """Citations are read from docstrings of tests: one, several in a bracket, or a range."""
    made = papers()
    assert made.cited("(P4)") == {"P4"}
    assert made.cited("P16 to P18: it leaves") == {"P16", "P17", "P18"}
    assert made.cited("KIP-12, SP3, P3x") == set()
    named = [name for names in made.citations()["P4"].values() for name in names]
    assert "test_128_mb_produced_and_consumed_are_not_read_from_a_disk" in named


def test_the_document_is_up_to_date() -> None:
    """`python docs/developers/papers.py` would change nothing, and every point has its chapter."""
    made = papers()
    assert made.PAGE.read_text() == made.page()
    assert list(made.points()) == CARRIED


def test_the_document_names_code_that_exists() -> None:
    """Modules, packages and examples, and a sentence and a title for each point."""
    made = papers()
    for number, point in made.points().items():
        assert point["says"].endswith("."), number
        assert point["title"], number
        assert point["code"], number
        missing = [name for name in point["code"] if not made.where(name).exists()]
        assert missing == [], number
