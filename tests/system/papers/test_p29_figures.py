"""The comparison of in-sync replicas with majorities: its figures are what the command prints."""

import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).resolve().parents[3] / "docs" / "explanation" / "replication.md"


def test_the_figures_in_the_document_are_those_the_command_prints() -> None:
    """P29: both tables, line by line, of `python -m verify.quorums --seed 1`."""
    command = [sys.executable, "-m", "verify.quorums", "--seed", "1"]
    printed = subprocess.run(command, capture_output=True, text=True, timeout=250, check=True)
    failures, latencies = printed.stdout.strip().split("\n\n")
    blocks = PAGE.read_text().split("```")[1::2]
    assert failures in [block.strip("\n") for block in blocks]
    assert latencies in [block.strip("\n") for block in blocks]
    assert (len(failures.splitlines()), len(latencies.splitlines())) == (9, 13)


def test_the_other_protocols_are_compared_one_by_one() -> None:
    """P29: majority quorums by figures; Raft, Zab, Viewstamped Replication, PacificA in words."""
    page = PAGE.read_text()
    assert "`python -m verify.quorums`" in page
    comparison = page.partition("## Beside other protocols")[2].partition("\n## ")[0]
    for protocol in ("Raft", "Zab", "Viewstamped Replication", "PacificA"):
        paragraph = comparison.partition(f"**{protocol}.**")[2].partition("\n\n")[0]
        assert len(paragraph.split()) > 50, f"{protocol} is named and not compared"
    assert "f + 1" in page
    assert "2f + 1" in page
