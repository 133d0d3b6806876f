"""The real command in a process of its own, and what it answered."""

import json
import os
import sys
from dataclasses import dataclass
from typing import Any

from click.testing import CliRunner

from ottla.cli.command import cli
from tests.system.cli.forked import run_forked


@dataclass(frozen=True, slots=True)
class Answer:
    """What the command printed, and how it ended."""

    code: int
    out: str
    error: str

    @property
    def json(self) -> Any:
        told = json.loads(self.out)
        _check_keys(told)
        return told

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()


def _check_keys(told: Any) -> None:
    """A key means the same in all commands: `partitions` is a list, their number has its own."""
    if isinstance(told, dict):
        assert isinstance(told.get("partitions", []), list), told
        assert isinstance(told.get("partition_count", 0), int | None), told
    if isinstance(told, dict | list):
        for each in told.values() if isinstance(told, dict) else told:
            _check_keys(each)


@dataclass(frozen=True, slots=True)
class Command:
    """`ottla` with a cluster to talk to."""

    bootstrap: str

    def try_to(self, *words: str, stdin: str | bytes = b"", timeout_s: float = 200) -> Answer:
        """Run the command, whatever comes of it."""
        given = stdin.encode() if isinstance(stdin, str) else stdin
        code, out, error = run_forked(words, self.environment, given, timeout_s)
        return Answer(code, out.decode(), error.decode())

    def __call__(self, *words: str, stdin: str | bytes = b"") -> Answer:
        """Run the command, which must succeed."""
        answer = self.try_to(*words, stdin=stdin)
        assert answer.code == 0, f"ottla {' '.join(words)}: {answer}"
        return answer

    def refused(self, *words: str, stdin: str | bytes = b"") -> str:
        """Run the command, which must fail with 1; what it said on standard error."""
        answer = self.try_to(*words, stdin=stdin)
        assert answer.code == 1, f"ottla {' '.join(words)}: {answer}"
        assert "Traceback" not in answer.error
        return answer.error

    def misused(self, *words: str, stdin: str = "") -> str:
        """Run the command in this process, which must find its words wrong; what it said."""
        result = CliRunner().invoke(
            cli, words, input=stdin, env={"OTTLA_BOOTSTRAP": self.bootstrap}
        )
        assert result.exit_code == 2, f"ottla {' '.join(words)}: {result.output}"
        return result.stderr

    def line(self, *words: str) -> list[str]:
        return [sys.executable, "-m", "ottla.cli", *words]

    @property
    def environment(self) -> dict[str, str]:
        return {**os.environ, "OTTLA_BOOTSTRAP": self.bootstrap, "TZ": "UTC"}
