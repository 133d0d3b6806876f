"""An error about a missing ACL says which one is missing, and how to add it."""

import pytest

from ottla.base.errors import ErrorCode
from ottla.cli.acl.rule import resource_of
from ottla.client.denied import Needs
from ottla.client.errors import refused

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
