"""No secret is a word of a command: other users of the machine can read those."""

import io
import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from rig.secret_search import register

from ottla.base.errors import OttlaError
from ottla.base.secret_options import CONFIG_VARIABLE
from ottla.base.settings import BROKER_SETTINGS, is_secret
from ottla.cli.command import cli
from ottla.cli.common import options
from ottla.cli.user import read_password
from ottla.client.common.errors import ClientError
from ottla.client.connection.security import default_security, security_by
from ottla.operations.secure.login import kept_password

SECRET = "not-for-others"
register(SECRET)
SECRETS = sorted(name for name, row in BROKER_SETTINGS.items() if row.sensitive)


def parameters(command: click.Command, words: tuple[str, ...] = ()) -> Iterator[tuple[str, str]]:
    """Each option and argument of a command and of those below it."""
    context = click.Context(command)
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            yield from parameters(below, (*words, name))
    for each in command.params:
        for name in (*each.opts, str(each.name)):
            yield " ".join(words), name


def test_no_command_takes_a_secret_as_a_word() -> None:
    """None has an option or argument for one; settings are the next test's."""
    found = list(parameters(cli))
    assert len(found) > 300
    pattern = re.compile(r"password|passwd|secret|token|credential|passphrase|jaas|key$")
    suspects = {name.strip("-") for _, name in found if pattern.search(name)}
    # What columns are made of the keys of records.
    assert suspects <= {"key", "on_null_key", "on-null-key"}, suspects


@pytest.mark.parametrize("name", SECRETS)
@pytest.mark.parametrize("prefix", ["", "listener.name.sasl_ssl.", "listener.name.x.plain."])
def test_a_secret_setting_is_read_from_a_file_and_from_nowhere_else(
    name: str, prefix: str, tmp_path: Path
) -> None:
    """The refusal names the remedy, and not the secret."""
    file = tmp_path / "secret"
    file.write_text(f"{SECRET}\n")
    full = prefix + name
    assert options.parse_settings([f"{full}=@{file}"]) == {full: SECRET}
    with pytest.raises(click.BadParameter) as refused:
        options.parse_settings([f"{full}={SECRET}"])
    assert f"{full}=@FILE" in refused.value.message
    assert SECRET not in refused.value.message
    with pytest.raises(click.BadParameter, match="cannot read"):
        options.parse_settings([f"{full}=@{file}.missing"])


@pytest.mark.parametrize(
    "name", ["ssl.keystore.location", "listener.name.x.ssl.client.auth", "retention.ms", "x"]
)
def test_other_settings_are_no_secrets(name: str) -> None:
    """They stand in a command as they are."""
    assert not is_secret(name)
    assert options.parse_settings([f"{name}=1"]) == {name: "1"}


@pytest.mark.parametrize("errors", ["strict", "surrogateescape"])
def test_a_password_that_is_not_utf_8_is_refused_without_showing_it(
    monkeypatch: pytest.MonkeyPatch, errors: str
) -> None:
    """Clients send passwords as UTF-8; Python reads other bytes by what the locale says."""
    monkeypatch.delenv("OTTLA_PASSWORD", raising=False)
    stdin = io.TextIOWrapper(io.BytesIO(b"p\xe4ss\n"), encoding="utf-8", errors=errors)
    monkeypatch.setattr("sys.stdin", stdin)
    with pytest.raises(click.UsageError, match="is not UTF-8") as refused:
        read_password("alice")
    assert refused.value.__cause__ is None
    monkeypatch.setenv("OTTLA_PASSWORD", "p\udce4ss")
    with pytest.raises(click.UsageError, match="is not UTF-8"):
        read_password("alice")


def test_settings_in_the_place_of_their_file_are_refused_without_showing_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As `--config`, in OTTLA_CONFIG, and in a program."""
    text = f"sasl.password={SECRET}"
    by_option = CliRunner().invoke(cli, ["topic", "list", "--config", text])
    by_variable = CliRunner().invoke(cli, ["topic", "list"], env={CONFIG_VARIABLE: text})
    monkeypatch.setenv(CONFIG_VARIABLE, text)
    for refuse in (lambda: security_by(text), default_security):
        with pytest.raises(ClientError, match="is no path but settings") as error:
            refuse()
        assert SECRET not in error.value.message
    for done in (by_option, by_variable):
        assert done.exit_code == 2
        assert "is no path but settings" in " ".join(done.output.split())
        assert SECRET not in done.output


@pytest.mark.parametrize("end", ["", "\n", "\r\n", "\n\n"])
def test_a_password_is_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, end: str) -> None:
    """With the end of a line or without, from each place."""
    monkeypatch.delenv("OTTLA_PASSWORD", raising=False)
    monkeypatch.setattr("sys.stdin", io.StringIO(SECRET + end))
    assert read_password("alice") == SECRET
    file = tmp_path / "secret"
    file.write_bytes((SECRET + end).encode())
    assert options.parse_settings([f"ssl.key.password=@{file}"]) == {"ssl.key.password": SECRET}


def test_a_password_of_two_lines_is_refused_wherever_it_comes_from(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """One program would take the first line, the next one both; no message has the password."""
    two = f"{SECRET}\nand another\n"
    file = tmp_path / "secret"
    file.write_text(two)
    refusals = []
    for name in ("ssl.key.password", "delegation.token.secret.key"):
        with pytest.raises(click.BadParameter) as refused:
            options.parse_settings([f"{name}=@{file}"])
        refusals.append(refused.value.message)
    monkeypatch.delenv("OTTLA_PASSWORD", raising=False)
    monkeypatch.setattr("sys.stdin", io.StringIO(two))
    with pytest.raises(click.UsageError) as misused:
        read_password("alice")
    refusals.append(misused.value.message)
    monkeypatch.setenv("OTTLA_PASSWORD", two)
    with pytest.raises(click.UsageError) as misused:
        read_password("alice")
    refusals.append(misused.value.message)
    with pytest.raises(OttlaError) as kept:
        kept_password(file)
    refusals.append(kept.value.message)
    assert ["line" in each and SECRET not in each for each in refusals] == [True] * 5


def test_secrets_that_are_no_passwords_may_have_several_lines(tmp_path: Path) -> None:
    """Keys in PEM, and logins of JAAS."""
    file = tmp_path / "secret"
    file.write_text("-----BEGIN\nAAAA\n-----END\n")
    name = "ssl.keystore.key"
    assert options.parse_settings([f"{name}=@{file}"]) == {name: "-----BEGIN\nAAAA\n-----END"}


def test_a_byte_order_mark_is_not_part_of_a_password(monkeypatch: pytest.MonkeyPatch) -> None:
    """Clients, which read their own file, do not send it."""
    monkeypatch.delenv("OTTLA_PASSWORD", raising=False)
    monkeypatch.setattr("sys.stdin", io.StringIO("\ufeffits text\r\n"))
    assert read_password("alice") == "its text"
