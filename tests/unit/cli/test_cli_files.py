"""A noun of the command line is the module or package of that name, and has its verbs."""

import re
from collections.abc import Iterator

import click
import pytest

from ottla.base.settings import BROKER_SETTINGS, TOPIC_SETTINGS, Setting
from ottla.base.settings.written_values import plain_value
from ottla.cli.command import cli


def commands(
    command: click.Command, words: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Every noun and verb of the parser, with its words."""
    if words:
        yield words, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            assert found is not None
            yield from commands(found, (*words, name))


def module_of(command: click.Command) -> str:
    """Where the function that serves a command stands."""
    assert command.callback is not None
    return command.callback.__module__


ALL = dict(commands(cli))
NOUNS = {words: command for words, command in ALL.items() if isinstance(command, click.Group)}
VERBS = {words: command for words, command in ALL.items() if words not in NOUNS}


@pytest.mark.parametrize("words", NOUNS, ids=" ".join)
def test_a_noun_is_the_module_of_its_name(words: tuple[str, ...]) -> None:
    """`ottla why` is `cli/why.py`, `ottla topic` the package `cli/topic/`."""
    assert module_of(NOUNS[words]) == ".".join(("ottla.cli", *words))


@pytest.mark.parametrize("words", VERBS, ids=" ".join)
def test_a_verb_is_in_the_module_of_its_noun(words: tuple[str, ...]) -> None:
    """`ottla why lso` is in `cli/why.py`, and `ottla produce`, without noun, in `cli/produce/`."""
    home = ".".join(("ottla.cli", *words[:-1])) if len(words) > 1 else f"ottla.cli.{words[0]}"
    assert f"{module_of(VERBS[words])}.".startswith(f"{home}.")


def test_the_walk_finds_the_commands() -> None:
    """It would pass if it found none."""
    assert len(NOUNS) >= 15
    assert {("why", "lso"), ("topic", "create"), ("config", "set"), ("produce",)} <= set(VERBS)


@pytest.mark.parametrize("words", VERBS, ids=" ".join)
def test_every_command_has_an_example_in_its_help(words: tuple[str, ...]) -> None:
    """Help costs no broker, says what the command does, and shows how it is meant."""
    command = VERBS[words]
    said, _, examples = (command.help or "").partition("\b")
    assert said.strip().split("\n")[0]
    assert "ottla " + " ".join(words) in examples


@pytest.mark.parametrize("words", [words for words in VERBS if len(words) > 1], ids=" ".join)
def test_the_line_about_a_verb_is_whole(words: tuple[str, ...]) -> None:
    """Its first sentence fits beside its name on a terminal of 80 columns, in its noun's help."""
    # As click reckons: two columns stay free at the right, six are gaps.
    longest = max(len(other[-1]) for other in ALL if other[:-1] == words[:-1])
    room = 80 - 2 - 6 - longest
    line = VERBS[words].get_short_help_str(room)
    assert line.endswith(".")
    assert not line.endswith("...")


def test_every_command_that_opens_a_connection_takes_the_settings_of_clients() -> None:
    """`--config` and `--bootstrap` go together; a command without them must open none."""
    options = {
        words: {one for p in command.params for one in p.opts} for words, command in VERBS.items()
    }
    without = {words for words, found in options.items() if "--config" not in found}
    assert without == {
        ("start",),
        ("broker", "run"),
        ("config", "explain"),
        ("certs", "dev"),
        ("log", "dump"),
        ("audit", "show"),
        ("audit", "verify"),
        ("store", "open"),
        ("store", "secure"),
        ("lake", "files"),
    }
    assert without == {words for words, found in options.items() if "--bootstrap" not in found}


@pytest.mark.parametrize(
    ("words", "table"),
    [
        (("start",), BROKER_SETTINGS),
        (("topic", "create"), TOPIC_SETTINGS),
        (("topic", "alter"), TOPIC_SETTINGS),
    ],
    ids=str,
)
def test_a_setting_in_the_help_of_a_command_is_one_that_it_takes(
    words: tuple[str, ...], table: dict[str, Setting]
) -> None:
    """Brokers and topics call the same thing by different names."""
    command = VERBS[words]
    helps = [getattr(option, "help", None) or "" for option in command.params]
    shown = re.findall(
        r"(?:--set |such as )([a-z.]+)=(\w+)", " ".join([command.help or "", *helps])
    )
    assert shown
    for name, value in shown:
        table[name].parse(plain_value(name, value))
