"""`ottla lake publish`: what it says."""

import json
from collections.abc import Callable
from pathlib import Path

from click.testing import CliRunner
from rig.nodes import Node

from ottla.cli.command import cli
from tests.system.lake.test_sink import committed

MakeTopic = Callable[..., str]


def run(node: Node, *words: str) -> str:
    """The command's output; it ends well."""
    arguments = ["lake", "publish", *words, "--bootstrap", node.bootstrap]
    done = CliRunner().invoke(cli, arguments, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


def test_command_says_what_is_left_and_what_it_did(
    node: Node, make_topic: MakeTopic, tmp_path: Path
) -> None:
    topic = make_topic(node, partitions=2)
    file = tmp_path / "f.csv"
    file.write_text("code,at,n\n" + "".join(f"c{n % 3},{n},{n}\n" for n in range(10)))
    words = (str(file), "--to", topic, "--key", "code", "--timestamp", "at", "--value", "n")

    assert (
        run(node, *words, "--dry-run") == "left to publish: 1 file; published before: 0 records\n"
    )
    assert committed(node, topic) == {0: [], 1: []}
    first = run(node, *words, "--records-per-second", "100000")
    assert first.startswith("10 records in ")
    assert first.endswith("s; published before: 0 records\n")
    assert run(node, *words) == f"nothing new in {file}; published before: 10 records\n"
    told = json.loads(run(node, *words, "-o", "json"))
    assert (told["records"], told["total"], told["files"]) == (0, 10, 1)
    found = sorted(
        (int(m.value()), m.key(), m.timestamp()[1])
        for p in committed(node, topic).values()
        for m in p
    )
    assert found == [(n, b"c%d" % (n % 3), n) for n in range(10)]
