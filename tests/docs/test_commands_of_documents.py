"""Every `ottla …` line of the documents, and of what health proposes, is a command that parses."""

import re
import shlex
from pathlib import Path

import click
import pytest

from ottla.cli.command import cli

ROOT = Path(__file__).resolve().parents[2]
PAGES = (ROOT / "docs" / "operating.md", ROOT / "src" / "ottla" / "diagnosis" / "health.py")
LAKE = ROOT / "docs" / "lake.md"
_BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_INLINE = re.compile(r"`(ottla [^`]+)`")


def commands() -> list[str]:
    """The lines, without what is left out by `…`."""
    found: list[str] = []
    texts = [page.read_text() for page in PAGES]
    texts.append(LAKE.read_text().partition("\n## Pipelines\n")[2])
    texts.append((ROOT / "docs" / "security.md").read_text())
    quick = (ROOT / "README.md").read_text().partition("\n## Secure in one line\n")[2]
    texts.append(quick.partition("\n## ")[0].replace("```\n", "```sh\n", 1))
    for text in texts:
        for block in _BLOCK.findall(text.replace("\\\n", " ")):
            found += [line for line in block.splitlines() if line.startswith("ottla ")]
        found += [line for line in _INLINE.findall(text) if "…" not in line]
    # Fields of a format string stand for a partition, or a broker's id.
    found = [re.sub(r"\{[^}]*down[^}]*\}|\bID\b", "3", line) for line in found]
    return sorted({re.sub(r"\{[^}]*\}", "flights-0", line) for line in found})


@pytest.mark.parametrize("line", commands())
def test_a_command_in_a_document_parses(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Noun, verb, options and arguments are there; a noun, or both, may be named alone, too."""
    # The file of settings that documents name.
    (tmp_path / "client.properties").write_text("security.protocol=PLAINTEXT\n")
    monkeypatch.chdir(tmp_path)
    command: click.Command = cli
    words = shlex.split(line)[1:]
    context = click.Context(cli, info_name="ottla")
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
    assert len(found) > 20
