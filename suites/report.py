"""Both lists beside each other: on the terminal, and in docs/reference/compatibility.md."""

import re
from collections import Counter
from collections.abc import Sequence

from rig.paths import ROOT
from suites.notes import note
from suites.result import Outcome, Result, Row
from suites.suite import Suite

DOCUMENT = ROOT / "docs" / "reference" / "compatibility.md"


def _cell(result: Result) -> str:
    if result.outcome in (Outcome.PASS, Outcome.FAIL):
        return f"{result.outcome} {result.seconds:.1f} s"
    return str(result.outcome)


def _remark(suite: Suite, row: Row) -> str:
    """A note of ours, else what the suite itself said where a test did not pass."""
    failed = Outcome.FAIL in (row.ottla.outcome, row.kafka.outcome)
    if failed and (written := note(suite.name, row.test)):
        return written
    words = [
        f"{name}: {result.reason}" if row.differs else result.reason
        for name, result in (("Ottla", row.ottla), ("Kafka", row.kafka))
        if result.reason
    ]
    return "; ".join(words if row.differs else words[:1])


def counts(rows: Sequence[Row]) -> str:
    """How many tests ended how, on both sides."""
    parts = []
    for name, outcomes in (
        ("Ottla", Counter(row.ottla.outcome for row in rows)),
        ("Kafka", Counter(row.kafka.outcome for row in rows)),
    ):
        description = ", ".join(f"{outcomes[one]} {one}" for one in Outcome if outcomes[one])
        parts.append(f"{name}: {description}")
    return "; ".join(parts)


def terminal(suite: Suite, rows: Sequence[Row]) -> str:
    """The table as text."""
    width = max([len(row.test) for row in rows] + [4])
    lines = [f"{'test':<{width}}  {'Ottla':<14}  {'Kafka':<14}  note"]
    lines += [
        f"{row.test:<{width}}  {_cell(row.ottla):<14}  {_cell(row.kafka):<14}  "
        f"{_remark(suite, row)}".rstrip()
        for row in rows
    ]
    return "\n".join([*lines, counts(rows)])


def section(suite: Suite, rows: Sequence[Row], about: str) -> str:
    """The part of the document that belongs to one suite."""
    lines = [f"## {suite.title}", "", f"{suite.source}. {about}", "", f"{counts(rows)}.", ""]
    lines += ["| test | Ottla | Kafka | note |", "| --- | --- | --- | --- |"]
    lines += [
        f"| {_text(row.test)} | {_cell(row.ottla)} | {_cell(row.kafka)} "
        f"| {_text(_remark(suite, row))} |"
        for row in rows
    ]
    return "\n".join(lines)


def _text(words: str) -> str:
    """Words that a cell of a table can hold."""
    return re.sub(r"\s+", " ", words).replace("|", "\\|").replace("<", "&lt;")


def write(suite: Suite, rows: Sequence[Row], about: str) -> None:
    """Put the section of this suite into the document, in place of the one of its last run."""
    begin, end = f"<!-- suite {suite.name} -->", f"<!-- end of suite {suite.name} -->"
    block = f"{begin}\n{section(suite, rows, about)}\n{end}"
    text = DOCUMENT.read_text()
    old = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
    there = old.search(text)
    DOCUMENT.write_text(
        old.sub(lambda _: block, text) if there else f"{text.rstrip()}\n\n{block}\n"
    )
