"""Loads killed with -9 at any step and any moment lose nothing and double nothing."""

import itertools
import random
from pathlib import Path

import pytest
from rig.nodes import Node

from tests.lake.kills.__main__ import FORMATS
from tests.lake.kills.rounds import play, problems
from tests.lake.kills.topics import KINDS, Topic

_KILLS = 4


@pytest.mark.parametrize(("form", "kind"), list(itertools.product(FORMATS, KINDS)))
def test_killed_loads_lose_and_double_nothing(
    node: Node, tmp_path: Path, form: str, kind: str
) -> None:
    """Read by delta-rs, pyiceberg and DuckDB; every offset is accounted for (P12, P13, P14).

    `python -m tests.lake.kills --count 500` kills more of them.
    """
    chance = random.Random(f"{form} {kind}")
    topic = Topic.made(node.bootstrap, f"killed-{form}-{kind}", kind, 1)
    folder = tmp_path / f"{form}_{kind}"
    tally = play(topic, folder, form, _KILLS, chance)
    assert tally.kills == _KILLS
    assert problems(topic, folder, form) == []
