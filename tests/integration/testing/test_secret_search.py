"""Secrets of tests are searched for in what brokers wrote; a session that finds one fails."""

import base64
import hmac
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from rig.secret_search import SecretSearch

ROOT = Path(__file__).resolve().parents[3]
# The secret is made when the test runs, so that it stands in no source or output by itself.
PROGRAM = """
import base64, html, json, logging, subprocess, sys, urllib.parse
from pathlib import Path
from rig import broker, process, secret_search

SECRET = "".join(["a very ", "<secret> ", "\\"word\\" ~~~ ???"])

def test_it(tmp_path):
    secret_search.register(SECRET, "the word")
    text = {text}
    {how}
"""
IN_PROCESS = 'logging.getLogger("ottla.some.part").warning("see %s", text)'
IN_CHILD = """log = tmp_path / "broker.log"
    process.start([sys.executable, "-c", f"print({text!r})"], log).child.wait()
    log.unlink()"""
IN_AUDIT = """home = tmp_path / "home"
    home.mkdir()
    (home / "ottla-audit-1-00000000000000000001.log").write_text(text)
    secret_search.SEARCH.watch(home)"""
CASES = {
    "logged by a broker in the process": ("SECRET", IN_PROCESS),
    "printed by a child whose log is gone": ("SECRET", IN_CHILD),
    "in an audit file": ("SECRET", IN_AUDIT),
    "in a traceback": (
        "SECRET",
        """try:
        raise ValueError(text)
    except ValueError:
        logging.getLogger("ottla.some.part").exception("it failed")""",
    ),
    "in what asyncio says of a task": (
        "SECRET",
        'logging.getLogger("asyncio").error("see %s", text)',
    ),
    "in the words of a command": (
        "SECRET",
        """subprocess.run([sys.executable, "-m", "ottla.cli", "--version", text])""",
    ),
    "in a store": (
        "SECRET",
        """home = tmp_path / "home"
    home.mkdir()
    (home / "ottla-store.sqlite").write_text(text)
    secret_search.SEARCH.watch(home)""",
    ),
    "in base64 behind a user's name": (
        "base64.b64encode(b'alice:' + SECRET.encode()).decode()",
        IN_PROCESS,
    ),
    "in base64 for URLs": (
        "base64.urlsafe_b64encode(b'{\"x\":\"' + SECRET.encode() + b'\"}').decode()",
        IN_PROCESS,
    ),
    "in a URL": ("urllib.parse.quote(SECRET)", IN_PROCESS),
    "as JSON": ("json.dumps({'x': SECRET})", IN_PROCESS),
    "in HTML": ("html.escape(SECRET)", IN_PROCESS),
    "as hex": ("SECRET.encode().hex()", IN_PROCESS),
}


def run(tmp_path: Path, text: str, how: str) -> "subprocess.CompletedProcess[str]":
    """A session of its own, with the hooks that all tests have."""
    test = tmp_path / "test_it.py"
    test.write_text(PROGRAM.format(text=text, how=how))
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "tests.conftest",
        "-p",
        "no:cacheprovider",
    ]
    command += ["--rootdir", str(tmp_path), "-c", "/dev/null", str(test)]
    return subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)


@pytest.mark.parametrize("case", CASES)
def test_a_session_that_finds_a_secret_fails(case: str, tmp_path: Path) -> None:
    """It names the secret and the place, and does not repeat the secret."""
    ended = run(tmp_path, *CASES[case])
    assert "1 passed" in ended.stdout, ended.stdout + ended.stderr
    assert ended.returncode == 1
    (line,) = [each for each in ended.stdout.splitlines() if "the word stands there" in each]
    assert ":1: " in line or case == "in a traceback"


def test_a_session_without_secrets_in_its_logs_is_green(tmp_path: Path) -> None:
    """The same program, with another text."""
    ended = run(tmp_path, '"nothing of it"', IN_CHILD)
    assert ended.returncode == 0, ended.stdout + ended.stderr


def found(search: SecretSearch, tmp_path: Path, *texts: str) -> int:
    file = tmp_path / "some.log"
    file.write_text("\n".join(texts))
    search.keep(file)
    return len(search.found())


def test_secrets_of_settings_and_of_key_files_are_registered(tmp_path: Path) -> None:
    """Passwords, those in JAAS texts, and each line of a private key."""
    key = base64.b64encode(bytes(range(96))).decode()
    pem = tmp_path / "server.pem"
    lines = "\n".join((key[:64], key[64:]))
    pem.write_text(f"-----BEGIN PRIVATE KEY-----\n{lines}\n-----END PRIVATE KEY-----\n")
    search = SecretSearch()
    jaas = 'module required username="broker-name" password="of the broker" user_al="of alice";'
    search.register_settings(
        {
            "listener.name.x.ssl.key.password": "of the store",
            "listener.name.x.plain.sasl.jaas.config": jaas,
            "ssl.keystore.location": str(pem),
            "node.id": "11111111",
        }
    )
    texts = ("of the store", "of the broker", "of alice", key[:64], key[64:])
    assert found(search, tmp_path, *texts, "broker-name", "11111111") == 5


def test_secrets_of_a_store_are_registered(tmp_path: Path) -> None:
    """The cluster's, and the keys of SCRAM users; salts are none."""
    store = tmp_path / "ottla-store.sqlite"
    with sqlite3.connect(store) as connection:
        connection.execute("CREATE TABLE nodes (path TEXT, data BLOB)")
        scram = "salt=c2FsdHNhbHRzYWx0,stored_key=c3RvcmVkc3RvcmVk,server_key=c2VydmVyc2VydmVy"
        rows = [
            ("/cluster/secret", b'{"version":1,"secret":"000102030405060708090a0b"}'),
            ("/config/users/alice", f'{{"config":{{"SCRAM-SHA-256":"{scram}"}}}}'.encode()),
        ]
        connection.executemany("INSERT INTO nodes VALUES (?, ?)", rows)
    search = SecretSearch()
    search.register_store(store)
    texts = ("000102030405060708090a0b", "c3RvcmVkc3RvcmVk", "c2VydmVyc2VydmVy")
    assert found(search, tmp_path, *texts, "c2FsdHNhbHRzYWx0") == 3


def test_hmacs_of_tokens_are_registered(tmp_path: Path) -> None:
    """By the brokers' key, of the tokens in a store and of those whose lines an audit log has."""
    search = SecretSearch()
    search.register_settings({"delegation.token.secret.key": "the key of all"})
    store = tmp_path / "ottla-store.sqlite"
    kept, removed = "Yo2Q3Q_hT7S9ypfIZ2CyVA", "jck7vPk5Yz4JCTokdNKoHA"
    with sqlite3.connect(store) as connection:
        connection.execute("CREATE TABLE nodes (path TEXT, data BLOB)")
        row = (f"/delegation_token/tokens/{kept}", b'{"version":3}')
        connection.execute("INSERT INTO nodes VALUES (?, ?)", row)
    audit = tmp_path / "ottla-audit-1-00000000000000000001.log"
    audit.write_text(f'{{"detail":{{"token":"{removed}"}}}}')
    search.watch(tmp_path)
    hmacs = [
        base64.b64encode(hmac.digest(b"the key of all", each.encode(), "sha512")).decode()
        for each in (kept, removed)
    ]
    assert found(search, tmp_path, *hmacs, kept, removed) == 2


def test_a_store_may_have_its_own_secrets_and_no_others(tmp_path: Path) -> None:
    """SCRAM keys are its; a password is not."""
    store = tmp_path / "ottla-store.sqlite"
    with sqlite3.connect(store) as connection:
        connection.execute("CREATE TABLE nodes (path TEXT, data BLOB)")
        text = '{"config":{"SCRAM-SHA-256":"salt=x,stored_key=c3RvcmVkc3RvcmVk,server_key=y"}}'
        rows = [("/config/users/alice", text.encode()), ("/x", b"alices own password")]
        connection.executemany("INSERT INTO nodes VALUES (?, ?)", rows)
    search = SecretSearch()
    search.register("alices own password", "a password")
    search.watch(tmp_path)
    (said,) = search.found()
    assert said.endswith(": a password stands there")


def test_a_short_secret_is_refused() -> None:
    """It would be found by chance."""
    with pytest.raises(AssertionError, match="shorter than 8 bytes"):
        SecretSearch().register("secret")
