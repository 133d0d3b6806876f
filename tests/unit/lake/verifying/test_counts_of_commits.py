"""What a verification counts: loads as loads, other commits by their kind, and nothing as such."""

from pathlib import Path

from click.testing import CliRunner

import ottla.lake
from ottla.cli.lake import lake
from ottla.lake.tables.opening import open_table
from tests.unit.lake.tables import commit


def test_a_compaction_is_no_load(tmp_path: Path) -> None:
    """It says what it is."""
    for _ in range(3):
        commit(open_table(str(tmp_path)), 5)
    ottla.lake.compact(str(tmp_path), master="here")
    found = ottla.lake.verify(str(tmp_path), bootstrap=None)
    assert (found.loads, found.other_commits, found.proven) == (3, {"compaction": 1}, True)
    said = CliRunner().invoke(lake, ["verify", str(tmp_path), "--offline"]).output
    assert "proven: 30 rows of flights in 3 loads, 1 compaction, hash" in said


def test_an_empty_table_is_nothing_to_prove(tmp_path: Path) -> None:
    """As a first load leaves it that fails."""
    open_table(str(tmp_path))
    found = ottla.lake.verify(str(tmp_path), bootstrap=None)
    assert (found.problems, found.is_empty, found.proven) == ([], True, False)
    done = CliRunner().invoke(lake, ["verify", str(tmp_path), "--offline"])
    assert done.exit_code == 1
    assert "nothing to prove: the table has no load yet" in done.output
    assert "proven:" not in done.output
