"""Every `ottla …` line of the documents, and of what health proposes, is a command that parses."""

import re
import shlex
from pathlib import Path

import click
import pytest

from ottla.cli.command import cli

ROOT = Path(__file__).resolve().parents[3]
PAGES = (
    ROOT / "README.md",
    ROOT / "SECURITY.md",
    *sorted((ROOT / "docs").rglob("*.md")),
    ROOT / "src" / "ottla" / "diagnosis" / "health.py",
)
# Pages that are made from other sources, or speak of commands that are gone.
_OTHERS = ("developers/", "reference/commands.md", "reference/compatibility.md")
_BLOCK = re.compile(r"^ *```sh\n(.*?)^ *```$", re.DOTALL | re.MULTILINE)
_INLINE = re.compile(r"`(ottla [^`\n]+)`")


def commands() -> list[str]:
    """The lines, without those that leave something out by `…`."""
    found: list[str] = []
    for page in PAGES:
        if page.is_relative_to(ROOT / "docs") and (
            page.relative_to(ROOT / "docs").as_posix().startswith(_OTHERS)
        ):
            continue
        text = page.read_text()
        for block in _BLOCK.findall(text.replace("\\\n", " ")):
            lines = [one.strip() for line in block.splitlines() for one in line.split(" | ")]
            found += [line.split(" > ")[0] for line in lines if line.startswith("ottla ")]
        found += [line for line in _INLINE.findall(text) if "…" not in line]
    # Fields of a format string stand for a partition, or a broker's id.
    found = [re.sub(r"\{[^}]*down[^}]*\}|\bID\b", "3", line) for line in found]
    found = [line for line in found if not {"--help", "--version"}.intersection(line.split())]
    found = [line.replace("TOPIC-P", "flights-0") for line in found]
    return sorted({re.sub(r"\{[^}]*\}", "flights-0", line) for line in found})


@pytest.mark.parametrize("line", commands())
def test_a_command_in_a_document_parses(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Noun, verb, options and arguments are there; a noun, or both, may be named alone, too."""
    # The files that documents name.
    (tmp_path / "client.properties").write_text("security.protocol=PLAINTEXT\n")
    for schema in ("order.proto", "new.avsc"):
        (tmp_path / schema).touch()
    for file in ("console.pem", "console.key", "masks.toml"):
        (tmp_path / file).touch()
    monkeypatch.chdir(tmp_path)
    command: click.Command = cli
    words = shlex.split(line, comments=True)[1:]
    # Commands keep the help option of the first context that asks for it.
    context = click.Context(cli, info_name="ottla", **cli.context_settings)
    while isinstance(command, click.Group) and words:
        found = command.get_command(context, words[0])
        assert found is not None, f"{line}: there is no {words[0]}"
        command, words = found, words[1:]
    if words:
        with command.make_context("ottla", words, parent=context):
            pass


def test_there_are_commands_to_try() -> None:
    """The pattern still finds them."""
    found = commands()
    assert "ottla partition reassign flights-0 --to 2,3,4" in found
    assert "ottla why isr flights-0" in found
    assert "ottla start --secure" in found
    assert "ottla lake expire /lake/flights --older-than 7d" in found
    assert len(found) > 100
