"""`make check` sees an import whose name was moved away."""

from pathlib import Path

from rig import imported
from rig.paths import ROOT


def _missing(text: str) -> list[str]:
    path = ROOT / "out" / "imports_of_this.py"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    try:
        return [problem.partition(": ")[2] for problem in imported.missing(path)]
    finally:
        path.unlink()


def test_a_name_that_is_not_there_is_found() -> None:
    """Of the package, and of tests themselves."""
    assert _missing("from ottla.lake.write.dead_letters import redrive_letters\n") == [
        "ottla.lake.write.dead_letters has no redrive_letters"
    ]
    assert _missing("def late():\n    from ottla.lake.nowhere import x\n") == [
        "there is no module ottla.lake.nowhere"
    ]
    assert _missing("from tests.system.lake.kills import no_such\n") == [
        "tests.system.lake.kills has no no_such"
    ]


def test_what_is_there_is_no_problem() -> None:
    """Definitions, names that are imported again, modules, and packages of others."""
    text = "from ottla import lake\nfrom ottla.lake import load, run_here\nfrom os import no_such\n"
    assert _missing(text) == []
    assert imported.missing(Path(__file__)) == []
