"""The command in the test's own process: without a second of start-up each time."""

import sys
from dataclasses import dataclass

from click.testing import CliRunner

from ottla.cli.command import main
from tests.system.cli.ottla_command import Answer, Command

# They work on the process's own standard streams.
_APART = ("produce", "consume")


@dataclass(frozen=True, slots=True)
class CommandHere(Command):
    """As `Command`; what it says and how it ends comes from the same `main`."""

    def try_to(self, *words: str, stdin: str | bytes = b"", timeout_s: float = 200) -> Answer:
        """Run the command, whatever comes of it."""
        if words[0] in _APART:
            return Command.try_to(self, *words, stdin=stdin, timeout_s=timeout_s)
        runner = CliRunner(env={"OTTLA_BOOTSTRAP": self.bootstrap, "TZ": "UTC"})
        before = sys.argv
        with runner.isolation(input=stdin) as (out, error, _):
            sys.argv = ["ottla", *words]
            try:
                main()
                code: object = 0
            except SystemExit as ended:
                code = ended.code
            finally:
                sys.argv = before
        assert isinstance(code, int)
        return Answer(code, out.getvalue().decode(), error.getvalue().decode())
