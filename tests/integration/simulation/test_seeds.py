"""Seeds draw worlds and troubles: none loses a record, and each repeats itself to the bit."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from verify.simulation.judging.table import events, wrongs
from verify.simulation.run import simulate_seed
from verify.simulation.worlds.calm import draw_calm
from verify.simulation.worlds.exact import draw_exact
from verify.simulation.worlds.idle import draw_idle
from verify.simulation.worlds.profile import draw
from verify.simulation.worlds.secure import draw_secure

SEEDS = 20
# So many of them run a second time, where strings hash to other numbers.
REPEATED_SEEDS = 8
# What the laws must have been in danger of, over all seeds together.
SIGHTS = [
    "continued by the flush journal",
    "elected alone",
    "elected from ELR",
    "fsync error",
    "full disk",
    "isr change refused",
    "isr expanded",
    "isr shrunk",
    "killed",
    "log truncated",
    "loses power",
    "topic made while a broker is away",
    "torn tail cut",
    "unflushed lost",
]
_REGRESS = Path(__file__).parent / "seeds" / "regress.txt"


def _batch(count: int, hash_seed: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "verify.simulation", "--seed", "1"]
    command += ["--count", str(count), "--no-shrink", "--repeatable"]
    return subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
    )


@pytest.mark.timeout(600)
def test_twenty_seeds_hold_and_repeat_whatever_strings_hash_to() -> None:
    """20 worlds of 30 s of trouble: all laws hold, and two hash seeds give the same runs."""
    batches = [_batch(SEEDS, "1"), _batch(REPEATED_SEEDS, "2")]
    outputs = [batch.communicate()[0] for batch in batches]
    sys.stdout.write(outputs[0])

    lines = [
        [line for line in output.splitlines() if line.startswith("seed ")] for output in outputs
    ]
    assert len(lines[0]) == SEEDS
    assert lines[0][:REPEATED_SEEDS] == lines[1]
    assert [batch.returncode for batch in batches] == [0, 0]
    reached = outputs[0].splitlines()[-1]
    assert reached.startswith("reached: ")
    assert [sight for sight in SIGHTS if f" {sight}" not in reached] == []


@pytest.mark.parametrize(
    ("seed", "world"),
    [
        pytest.param(int(seed), world, id=what)
        for seed, world, what in (
            line.split(" ", 2)
            for line in _REGRESS.read_text().splitlines()
            if line and not line.startswith("#")
        )
    ],
)
def test_seed_that_once_failed_holds(seed: int, world: str) -> None:
    """What a seed has shown once is looked at for ever."""
    kind, _, seconds = world.partition(":")
    worlds = {"calm": draw_calm, "exact": draw_exact, "idle": draw_idle, "secure": draw_secure}
    if kind in worlds:
        report = simulate_seed(seed, profile=worlds[kind](seed), seconds=float(seconds))
    else:
        brokers = None if world == "-" else int(world)
        report = simulate_seed(seed, profile=draw(seed, brokers))
    assert report.is_good, f"{events(report)}\n{wrongs(report)}"


def test_other_seeds_give_other_runs() -> None:
    """A hash that never changed would prove nothing."""
    digests = {simulate_seed(seed, profile=draw(1, 1), seconds=2).digest for seed in range(5)}
    assert len(digests) == 5
