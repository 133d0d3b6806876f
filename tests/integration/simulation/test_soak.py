"""A soak adds up what its seeds came to, and goes on where it was ended."""

import json
from pathlib import Path

import pytest
from verify.simulation.soak import main
from verify.simulation.worlds.calm import draw_calm
from verify.simulation.worlds.profile import draw

# As of the first day: calm worlds are drawn after all that a seed draws elsewhere.
KEPT = ("brokers", "partitions", "flush_policy", "session_ms", "segment_ms", "min_in_sync")


def _soak(journal: Path, hours: float) -> int:
    return main(["--journal", str(journal), "--hours", str(hours), "--seconds", "2", "--seed", "7"])


def test_soak_that_was_ended_goes_on_with_the_next_seed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A second call adds seeds behind the first's, and totals are of both."""
    journal = tmp_path / "soak.jsonl"
    assert _soak(journal, 0.001) == 0
    first = [json.loads(line) for line in journal.read_text().splitlines()]
    assert [line["seed"] for line in first] == [7]

    assert _soak(journal, 1.1 * first[0]["virtual_s"] / 3600) == 0
    both = [json.loads(line) for line in journal.read_text().splitlines()]
    assert both[0] == first[0]
    assert [line["seed"] for line in both] == [7, 8]
    assert capsys.readouterr().out.splitlines()[-1].startswith("all: 2 seeds, ")


def test_soak_with_a_violation_says_so_at_its_end(tmp_path: Path) -> None:
    """One bad seed in the journal is enough, whatever came after it."""
    journal = tmp_path / "soak.jsonl"
    assert _soak(journal, 0.001) == 0
    line = json.loads(journal.read_text())
    journal.write_text(json.dumps({**line, "wrongs": ["lost-write"]}) + "\n")
    assert _soak(journal, 0.001) == 1


def test_calm_worlds_are_otherwise_the_seeds_own() -> None:
    """Rates and waits differ from what a seed draws; its cluster does not."""
    for seed in range(20):
        calm, own = draw_calm(seed), draw(seed)
        assert [getattr(calm, name) for name in KEPT] == [getattr(own, name) for name in KEPT]
        assert calm.send_every_ms >= 500
        kinds = {kind for kind, weight in own.weights.items() if weight}
        assert {kind for kind, weight in calm.weights.items() if weight} == kinds
