"""`ottla start --secure` before any broker runs: what is refused, kept, and said."""

from pathlib import Path

import click
import pytest
from cryptography import x509

from ottla.base.errors import OttlaError
from ottla.cli.start.secure import secure
from ottla.cli.start.secured import address_for_clients, instructions
from ottla.cli.start.start import start
from ottla.cli.user import with_users
from ottla.operations.secure.settings import SecureFolder


def given(data: Path, **more: str) -> dict[str, str]:
    named = {name.replace("_", "."): text for name, text in more.items()}
    return {"listeners": "SASL_SSL://127.0.0.1:9092", "log.dirs": str(data), **named}


def run(*words: str) -> None:
    """The command, which is to be refused before it serves."""
    start.main([*words, "--port", "1"], standalone_mode=False)


@pytest.mark.parametrize("left", ["admin.password", "ca.key", "client.properties"])
def test_a_secured_folder_is_opened_only_when_that_is_said(tmp_path: Path, left: str) -> None:
    """A start without the option would serve everything to every client.

    The password may be gone: removing its file is how an administrator gets another one.
    """
    (tmp_path / left).touch()
    with pytest.raises(OttlaError, match="was started with --secure: add it again, or --no-secure"):
        run("--data", str(tmp_path), "--set", "x")
    with pytest.raises(OttlaError, match="was started with --secure"):
        run("--data", str(tmp_path), "--brokers", "3", "--set", "x")
    # The next thing that is wrong.
    with pytest.raises(click.BadParameter, match="is not NAME=VALUE"):
        run("--data", str(tmp_path), "--no-secure", "--set", "x")


def test_a_folder_that_cannot_be_looked_into_is_a_sentence(tmp_path: Path) -> None:
    """Here for a name that no file can have, since tests may be root; else it is another user's."""
    with pytest.raises(OttlaError, match="cannot be read: File name too long; choose another"):
        run("--data", str(tmp_path / ("a" * 300)))


def test_an_ipv6_address_is_said_in_brackets() -> None:
    """However `--host` was given; clients refuse it without."""
    assert address_for_clients("::1", 9092) == "[::1]:9092"
    assert address_for_clients("[::1]", 9092) == "[::1]:9092"
    assert address_for_clients("127.0.0.1", 9092) == "127.0.0.1:9092"
    assert address_for_clients("", 9092) == ":9092"


@pytest.mark.parametrize("brokers", ["1", "3"])
def test_a_contradiction_is_refused_before_anything_is_made(tmp_path: Path, brokers: str) -> None:
    """Settings that are given are not overruled in silence."""
    data = tmp_path / "data"
    opened = ("--set", "allow.everyone.if.no.acl.found=true")
    with pytest.raises(OttlaError, match=r"found contradicts --secure"):
        run("--secure", "--data", str(data), "--brokers", brokers, *opened)
    assert not data.exists()


def test_an_administrator_with_another_password_is_said_and_left_alone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It was changed on purpose; one that was removed is made again; brokers' is ours to set."""
    assert secure(given(tmp_path), tmp_path, several=True).notes == []
    users = with_users("", str(tmp_path), lambda known: known.find())
    assert [user.name for user in users] == ["admin", "broker"]
    for name in ("admin", "broker"):
        with_users("", str(tmp_path), lambda known, name=name: known.set_password(name, "new"))
    (note,) = secure(given(tmp_path), tmp_path, several=True).notes
    assert note.startswith(f"admin has another password than the one in {tmp_path}/admin.password")
    assert f"`ottla user password admin --store {tmp_path} < {tmp_path}/admin.password`" in note
    (tmp_path / "admin.password").write_text("new\n")
    assert secure(given(tmp_path), tmp_path, several=True).notes == []
    with_users("", str(tmp_path), lambda known: known.remove("admin"))
    assert secure(given(tmp_path), tmp_path, several=False).notes == []
    for file in ("admin.password", "broker.password"):
        assert (tmp_path / file).read_text().strip() not in caplog.text


def test_a_listener_on_every_interface_is_for_the_names_of_this_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As far as it knows them."""
    monkeypatch.setattr("socket.gethostname", lambda: "broker-7")
    monkeypatch.setattr("socket.getfqdn", lambda: "broker-7.example")
    addresses = [(2, 1, 6, "", ("10.0.0.7", 0)), (10, 1, 6, "", ("fe80::7%eth0", 0, 0, 2))]
    monkeypatch.setattr("socket.getaddrinfo", lambda *_: addresses)
    made = secure(given(tmp_path, listeners="SASL_SSL://:9092"), tmp_path, several=False)
    before = made.files.certificate.read_bytes()
    found = x509.load_pem_x509_certificate(before)
    names = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["broker-7", "broker-7.example", "localhost"]
    assert [str(each) for each in names.get_values_for_type(x509.IPAddress)] == [
        *("10.0.0.7", "fe80::7", "127.0.0.1", "::1")
    ]
    assert made.renew() == []
    assert made.files.certificate.read_bytes() == before


def test_the_instructions_quote_what_a_shell_would_read_otherwise(tmp_path: Path) -> None:
    """And name files where there is a secret."""
    files = SecureFolder(tmp_path / "it's $HOME")
    lines = instructions(files, ["localhost:9092", "localhost:9093"])
    (export,) = [line for line in lines if "export" in line]
    assert export == (
        f"  export OTTLA_CONFIG='{tmp_path}/it'\"'\"'s $HOME/client.properties'"
        " OTTLA_BOOTSTRAP=localhost:9092,localhost:9093"
    )
    assert f'  password = open("{tmp_path}/it\'s $HOME/admin.password").read().strip()' in lines


def test_a_note_names_the_store_that_is_used(tmp_path: Path) -> None:
    """It is with the logs, which `--set log.dirs` may put elsewhere than the passwords."""
    data, logs = tmp_path / "data", tmp_path / "logs"
    assert secure(given(logs), data, several=False).notes == []
    (data / "admin.password").write_text("another\n")
    (note,) = secure(given(logs), data, several=False).notes
    assert f"`ottla user password admin --store {logs} < {data}/admin.password`" in note
