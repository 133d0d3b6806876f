"""Each point of the papers that a single broker can keep is shown by a test that cites it."""

import ast
import re
from collections import defaultdict
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
# Log and speed, producer, consumer and lake; checkpoints; flushing; the four uses.
CARRIED = {f"P{number}" for number in (*range(1, 15), 19, 27, *range(39, 43))}
_POINT = re.compile(r"\bP\d{1,2}\b")


def citing() -> dict[str, set[str]]:
    """Names of tests by the points their docstrings cite."""
    found: dict[str, set[str]] = defaultdict(set)
    for path in TESTS.rglob("test_*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and (
                node.name.startswith("test_")
            ):
                for point in _POINT.findall(ast.get_docstring(node) or ""):
                    found[point].add(node.name)
    return found


def test_every_point_carried_is_cited_by_a_test() -> None:
    """A point without a test is a promise without a proof."""
    found = citing()
    assert sorted(CARRIED - found.keys()) == []


def test_the_search_knows_a_citation_when_it_sees_one() -> None:
    """Citations are read from docstrings of tests, one or several in a bracket."""
    found = citing()
    assert "test_128_mb_produced_and_consumed_are_not_read_from_a_disk" in found["P4"]
    assert "test_group_commit_flushes_before_it_answers_and_once_for_many" in found["P3"]
    assert "P99" not in found
