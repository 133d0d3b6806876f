"""`ottla token`: a token is made, logs a command in, is renewed and ends; it is in no log."""

import json
import logging
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from rig.probe import free_port
from rig.secret_search import register

import ottla.testing
from tests.system.cli.ottla_command import Command

PASSWORD = "alices long secret"


@pytest.fixture(scope="module")
def secured() -> Iterator[Command]:
    """Commands to a SASL listener; alice and bob can log in."""
    port, open_port = free_port(), free_port()
    settings = {
        "listeners": f"SASL_PLAINTEXT://127.0.0.1:{port},PLAINTEXT://127.0.0.1:{open_port}",
        "security.inter.broker.protocol": "PLAINTEXT",
        "sasl.enabled.mechanisms": "SCRAM-SHA-512",
        "delegation.token.secret.key": "the key of all brokers",
    }
    with ottla.testing.Broker(settings=settings):
        admin = Command(f"127.0.0.1:{open_port}")
        for user in ("alice", "bob"):
            admin("user", "add", user, stdin=PASSWORD + "\n")
        yield Command(f"127.0.0.1:{port}")


def config(folder: Path, user: str = "alice") -> tuple[str, str]:
    file = folder / f"{user}.properties"
    file.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=SCRAM-SHA-512\n"
        f"sasl.username={user}\nsasl.password={PASSWORD}\n"
    )
    return "--config", str(file)


def test_a_token_logs_in_for_its_owner_until_it_ends(
    secured: Command, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """With the file that `create` writes; no output and no log has the secret."""
    caplog.set_level(logging.DEBUG)
    alice, job = config(tmp_path), tmp_path / "job.properties"
    made = secured("token", "create", "--to", str(job), "--for", "2h", *alice, "-o", "json")
    token = made.json
    assert (token["owner"], token["requester"]) == ("User:alice", "User:alice")
    assert "hmac" not in token
    assert stat.S_IMODE(job.stat().st_mode) == 0o600
    secret = job.read_text().partition('password="')[2].partition('"')[0]
    assert len(secret) == 88
    register(secret, "the HMAC of a token")
    as_job = ("--config", str(job))
    secured("topic", "create", "flights", *as_job)
    assert "flights" in secured("topic", "list", *as_job).out
    listed = secured("token", "list", *alice, "-o", "json")
    assert [one["id"] for one in listed.json] == [token["id"]]
    renewed = secured("token", "renew", token["id"], "--for", "1h", *alice)
    assert renewed.out.startswith(f"token {token['id']} is good until 2")
    sooner = secured("token", "expire", token["id"], "--in", "10m", *alice)
    assert f"token {token['id']} ends at 2" in sooner.out
    ended = secured("token", "expire", token["id"], *alice)
    assert ended.out == f"token {token['id']} has ended\n"
    refused = secured.refused("topic", "list", *as_job)
    assert f"refused the login of delegation token {token['id']!r}" in refused
    for text in (made.out, listed.out, refused, caplog.text):
        assert secret not in text


def test_a_token_is_made_of_another_user_and_shown_once(secured: Command, tmp_path: Path) -> None:
    """Its owner and its renewers end it; who has none of these roles does not find it."""
    alice, bob = config(tmp_path), config(tmp_path, "bob")
    made = secured("token", "create", "--owner", "User:bob", *alice, "-o", "json").json
    assert (made["owner"], made["requester"]) == ("User:bob", "User:alice")
    assert len(made["hmac"]) == 88
    register(made["hmac"], "the HMAC of a token")
    assert "hmac" not in json.dumps(secured("token", "list", *alice, "-o", "json").json)
    assert "DELEGATION_TOKEN_OWNER_MISMATCH" in secured.refused(
        "token", "renew", made["id"], *alice
    )
    secured("token", "expire", made["id"], *bob)
    assert "none that this user may see" in secured.refused("token", "renew", made["id"], *bob)


def test_a_token_makes_no_other_and_mistakes_make_none(secured: Command, tmp_path: Path) -> None:
    """A file that cannot be written is found before; words that name no user, too."""
    alice, job = config(tmp_path), tmp_path / "job.properties"
    secured("token", "create", "--to", str(job), *alice)
    assert "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED" in secured.refused(
        "token", "create", "--config", str(job)
    )
    count = len(secured("token", "list", *alice, "-o", "json").json)
    nowhere = secured.refused("token", "create", "--to", str(tmp_path / "no" / "file"), *alice)
    assert "no token was made" in nowhere
    assert "User:alice" in secured.misused("token", "create", "--renewer", "bob", *alice)
    assert len(secured("token", "list", *alice, "-o", "json").json) == count
    assert not list(tmp_path.glob(".*"))
