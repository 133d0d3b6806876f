"""`ottla broker log-level`, and logs as JSON."""

import json
import signal
from pathlib import Path

from tests.system.cli.several_brokers import started


def test_levels_change_by_area_and_lines_are_json(tmp_path: Path) -> None:
    """Of all brokers or of one; a child of the area follows, and `default` takes it back."""
    options = ("--brokers", "2", "-v", "--set", "logger.format=json")
    with started(tmp_path / "data", *options) as (run, starter):

        def levels(*words: str) -> dict[tuple[int, str], str]:
            rows = run("broker", "log-level", *words, "-o", "json").json
            return {(row["broker"], row["logger"]): row["level"] for row in rows}

        before = levels("replication")
        assert set(before.values()) == {"INFO"}
        assert {broker for broker, _ in before} == {1, 2}
        assert set(levels("replication", "debug", "--broker", "2").values()) == {"DEBUG"}
        after = levels("replication")
        assert {level for (broker, _), level in after.items() if broker == 1} == {"INFO"}
        assert {level for (broker, _), level in after.items() if broker == 2} == {"DEBUG"}
        assert set(levels("network").values()) == {"INFO"}
        assert levels("replication", "default") == before
        said = run.refused("broker", "log-level", "nonsense", "debug")
        assert "no logger of broker 1 has a part that begins with 'nonsense'" in said
        starter.send_signal(signal.SIGINT)
        assert starter.stderr is not None
        lines = [json.loads(line) for line in starter.stderr.read().splitlines() if line]
    assert {line.get("broker") for line in lines} >= {1, 2}
    assert all(line["time"][-6] in "+-" for line in lines)
