"""Every rule that code or a test cites stands in a document, and every rule there is kept."""

import re
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
# Citations stand in brackets, (R-3), (S1, S14), (P15: what for), or before a colon, S6: what for.
_BRACKETS = re.compile(r"\(([^()]*)\)")
_RULE = re.compile(r"\b(R-\d+|S\d{1,2}|P\d{1,2})\b")
_LEADING = re.compile(r"\b(R-\d+|S\d{1,2})(?=:| with )")
_ROW = re.compile(r"^\| (R-\d+|S\d+) \|", re.MULTILINE)


def cited() -> dict[str, set[str]]:
    """Files by the rules they cite."""
    found: dict[str, set[str]] = defaultdict(set)
    for folder in ("src", "tests", "chaos", "bench", "verify"):
        for path in (ROOT / folder).rglob("*.py"):
            if path == Path(__file__).resolve():
                continue
            for rule in citations(path.read_text()):
                found[rule].add(str(path.relative_to(ROOT)))
    return found


def citations(text: str) -> list[str]:
    """The rules that `text` cites."""
    inside = [rule for brackets in _BRACKETS.findall(text) for rule in _RULE.findall(brackets)]
    return inside + _LEADING.findall(text)


def documented() -> list[str]:
    """The rules and scenarios of docs/developers/rules.md, in its order."""
    return _ROW.findall((ROOT / "docs/developers/rules.md").read_text())


def test_every_citation_is_explained_in_a_document() -> None:
    """A reader who meets (R-10) in the code finds a sentence for it in the repository."""
    explained = {*documented(), *(f"P{number}" for number in range(1, 43))}
    unknown = {rule: sorted(files) for rule, files in cited().items() if rule not in explained}
    assert unknown == {}


def test_every_rule_of_the_document_is_cited_where_it_is_kept() -> None:
    """A rule that no code and no test cites would be a promise without a proof."""
    rules = documented()
    assert len(rules) == len(set(rules))
    assert [f"R-{n}" for n in range(1, 13)] + [f"S{n}" for n in range(1, 34)] == rules
    found = cited()
    assert [rule for rule in rules if not found[rule]] == []


def test_the_search_finds_citations_as_they_are_written() -> None:
    """In brackets, several of them, or with words beside them."""
    text = "R-3: kept (R-10), also (S1, S14) and (P25: min ISR); S3 alone is a place for objects"
    assert citations(text) == ["R-10", "S1", "S14", "P25", "R-3"]
