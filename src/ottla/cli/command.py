"""The `ottla` command: imports the module of the requested noun, and shows all errors alike.

A command's module is imported only when that command runs. An error is printed to standard error:
one sentence with its cause and remedy, or an object with `-o json` (`cli.common.error_output`). The
exit code is 1, or 2 for wrong usage, as shells expect.
"""

import errno
import os
import sys
from importlib import import_module
from typing import Any

import click

from ottla import __version__, _compiled
from ottla.base.errors import ErrorCode, OttlaError, WrongWords
from ottla.cli.common.error_output import show_error, show_misuse

# The errors of a write to a full disk.
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)

# For each noun: the module of its command, and its line in the overview, which needs no import.
_COMMANDS = {
    "start": ("ottla.cli.start.start:start", "Start a broker on this machine."),
    "broker": ("ottla.cli.broker:broker", "Run a broker from a file, or empty one."),
    "cluster": ("ottla.cli.cluster:cluster", "Describe a cluster, its health, its balance."),
    "topic": ("ottla.cli.topic:topic", "Create, list, describe, alter and delete topics."),
    "partition": ("ottla.cli.partition:partition", "Elect leaders, move partitions."),
    "produce": ("ottla.cli.produce.produce:produce", "Send lines to a topic."),
    "consume": ("ottla.cli.consume.consume:consume", "Show the records of a topic."),
    "perf": ("ottla.cli.perf:perf", "Measure how fast records are taken and given."),
    "group": ("ottla.cli.group:group", "List, describe and rewind consumer groups."),
    "txn": ("ottla.cli.txn:txn", "List, describe and abort transactions."),
    "dlq": ("ottla.cli.dlq:dlq", "List dead letters, send their records again."),
    "config": ("ottla.cli.config:config", "Show, change and explain settings."),
    "quota": ("ottla.cli.quota:quota", "Set how much clients may use."),
    "acl": ("ottla.cli.acl:acl", "Say which principal may do what."),
    "audit": ("ottla.cli.audit:audit", "Read and verify audit logs."),
    "user": ("ottla.cli.user:user", "Say who can log in."),
    "token": ("ottla.cli.token:token", "Make tokens to log in with."),
    "certs": ("ottla.cli.certs:certs", "Make certificates for a laptop."),
    "store": ("ottla.cli.store:store", "Protect the nodes in ZooKeeper."),
    "mcp": ("ottla.cli.mcp:mcp", "Let an agent look at a cluster."),
    "undo": ("ottla.cli.undo:undo", "List what can be undone, and undo it."),
    "why": ("ottla.cli.why:why", "Say why a partition or group is as it is."),
    "doctor": ("ottla.cli.doctor:doctor", "Find what is wrong, from the client's side."),
    "whatif": ("ottla.cli.whatif:whatif", "Predict what a change of the cluster would do."),
    "log": ("ottla.cli.log:log", "Look into log files."),
    "console": ("ottla.cli.console:console", "Serve pages about a cluster, for a browser."),
    "lake": ("ottla.cli.lake:lake", "Load topics into a lake, and prove it."),
}
# A note that the codec is not compiled, and why; empty if it is.
_plain_codec = _compiled.reason() and f"plain, which is slower: {_compiled.reason()}"


class _Nouns(click.Group):
    """The group of all nouns; a noun's module is imported on first use."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  # click's signature.
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in _COMMANDS:
            return None
        module, _, name = _COMMANDS[cmd_name][0].partition(":")
        command = getattr(import_module(module), name)
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in _COMMANDS and not args[0].startswith("-"):
            ctx.fail(f"there is no command {args[0]!r}{_nearest(args[0])}")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except WrongWords as error:
            raise click.UsageError(error.message) from error
        except BrokenPipeError:
            # The reader of the output, such as `head`, has closed it.
            _drop_output()
            return 0
        except OSError as error:
            # Ottla's own files and connections raise OttlaError, so standard output failed.
            if error.errno not in _FULL:
                raise
            _drop_output()
            raise OttlaError(
                ErrorCode.KAFKA_STORAGE_ERROR,
                f"cannot write the output: {error.strerror}; make room where it goes",
            ) from error
        except KeyboardInterrupt:
            if sys.stderr.isatty():
                # End the line on which the terminal shows ^C.
                click.echo(err=True)
            ctx.exit(130)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in _COMMANDS.items()])


@click.group(cls=_Nouns, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(
    f"{__version__}, codec {_plain_codec or 'compiled'}",
    prog_name="ottla",
    message="%(prog)s %(version)s",
)
def cli() -> None:
    """A commit log that any Kafka client can use, and loads into a lake that prove themselves.

    \b
    ottla start                                   a broker on localhost:9092
    echo hello | ottla produce greetings          send a record
    ottla consume greetings -n 1                  read it back
    ottla lake load greetings --to /tmp/lake      load it into Parquet, exactly once

    Commands talk to localhost:9092, or to --bootstrap HOST:PORT (or OTTLA_BOOTSTRAP), which may be
    an Apache Kafka too.
    """  # noqa: D301  # click's mark for text that is not to be wrapped.


def _drop_output() -> None:
    """Discard the buffered standard output, and write nothing more to it."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _open_missing_streams() -> None:
    """Open the null device for standard streams that the caller closed.

    Otherwise Python sets them to None, and the next file opened gets their descriptor.
    """
    if sys.stdin is None:
        sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: SIM115  # Until the process ends.
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115


def _nearest(word: str) -> str:
    # Imported only after a mistake.
    from difflib import get_close_matches  # noqa: PLC0415

    near = get_close_matches(word, _COMMANDS, n=1)
    return f"; did you mean {near[0]}?" if near else f"; there are {', '.join(_COMMANDS)}"


def _refused_by_the_system(error: OSError) -> OttlaError:
    place = f"{error.filename}: " if error.filename else ""
    return OttlaError(
        ErrorCode.KAFKA_STORAGE_ERROR, f"{place}{error.strerror or error or type(error).__name__}"
    )


def main() -> None:
    """Run the command: the entry point of the script `ottla`."""
    _open_missing_streams()
    try:
        code = cli.main(standalone_mode=False)
    except click.ClickException as error:
        show_misuse(error, sys.argv[1:])
        sys.exit(error.exit_code)
    except OttlaError as error:
        show_error(error, sys.argv[1:])
        sys.exit(1)
    except OSError as error:
        # An error about a file that an option names, for example. If the reader of the output has
        # closed it, click itself ends without a message.
        show_error(_refused_by_the_system(error), sys.argv[1:])
        sys.exit(1)
    except (click.Abort, KeyboardInterrupt):
        sys.exit(130)
    sys.exit(code if isinstance(code, int) else 0)
