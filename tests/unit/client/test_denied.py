"""An error about a missing ACL says which one is missing, and how to add it."""

from pathlib import Path

import pytest

from ottla.base.errors import ErrorCode
from ottla.cli.acl import resource_of
from ottla.client.common.errors import LoginName, Needs, refused, unknown_topic, with_login
from ottla.client.connection.security import read_config, refusal_named, security_by, security_of

NEEDED = [
    Needs("read", "group", "readers"),
    Needs("describe", "topic", "flights"),
    Needs("write", "transactional-id", "copier"),
    Needs("describe", "cluster"),
]


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (ErrorCode.TOPIC_AUTHORIZATION_FAILED, "describe topic:flights"),
        (ErrorCode.GROUP_AUTHORIZATION_FAILED, "read group:readers"),
        (
            ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
            "write transactional-id:copier",
        ),
        (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "describe cluster"),
    ],
)
def test_the_acl_of_the_denied_kind_is_named(code: ErrorCode, words: str) -> None:
    """In the words of a command, which takes them."""
    error = refused(code, "go on", None, NEEDED)
    assert f"; allow it: ottla acl add User:NAME {words} (" in error.message
    assert resource_of(words.split()[1])


def test_other_errors_keep_their_remedy() -> None:
    """Whatever ACLs the request takes."""
    error = refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "go on", None, NEEDED)
    assert "create the topic first" in error.message
    assert "ottla acl" not in error.message


DENIED = ErrorCode.TOPIC_AUTHORIZATION_FAILED
FILE = "/etc/ottla/client.properties"


def test_a_refusal_says_who_was_refused_by_which_file_and_where() -> None:
    """On a machine of Spark's the file may be another one. The command has the user."""
    error = refused(DENIED, "fetch", None, [Needs("read", "topic", "flights")])
    login = LoginName("logs in as user 'ann lee'", "User:ann lee", FILE)
    assert with_login(DENIED, error.message, login, "worker-1") == (
        "the broker refused to fetch; allow it: ottla acl add 'User:ann lee' read topic:flights. "
        f"On worker-1 this client logs in as user 'ann lee', by the settings in {FILE}"
    )


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({}, "does not log in"),
        (
            {
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": "PLAIN",
                "sasl.username": "ann",
                "sasl.password": "hunter2",
            },
            "logs in as user 'ann'",
        ),
        (
            {
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": "SCRAM-SHA-256",
                "sasl.jaas.config": "org.apache.kafka.common.security.scram.ScramLoginModule "
                'required username="id" password="hunter2" tokenauth="true";',
            },
            "logs in as delegation token 'id'",
        ),
    ],
)
def test_who_a_client_is_follows_from_its_settings(
    settings: dict[str, str], words: str, tmp_path: Path
) -> None:
    """With the path of their file, where they stand in one; no secret is in it."""
    path = tmp_path / "client.properties"
    path.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    for security, file in (
        (security_of(settings), "the settings of its program"),
        (security_of(read_config(str(path))), "the settings of its program"),
        (security_by(str(path)), f"the settings in {path}"),
    ):
        said = refusal_named(refused(DENIED, "fetch"), security).message
        assert said.endswith(f" this client {words}, by {file}")
        assert "hunter2" not in said


def test_other_failures_are_left_as_they_are() -> None:
    """A missing topic has nothing to do with a login."""
    error = unknown_topic("flights", [])
    assert refusal_named(error, security_of({})) is error
    assert with_login(ErrorCode.CORRUPT_MESSAGE, "x", LoginName(), "h") is None
