"""`ottla acl`: ACLs are added, listed, explained and removed."""

from collections.abc import Iterator

import pytest

import ottla.testing
from tests.system.cli.ottla_command import Command


@pytest.fixture(scope="module")
def secured() -> Iterator[Command]:
    settings = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS;User:root",
    }
    with ottla.testing.Broker(settings=settings) as running:
        yield Command(running.bootstrap)


def test_acls_are_added_listed_explained_and_removed(secured: Command) -> None:
    """The rule that decides is named: a DENY before an ALLOW, or none."""
    rule = ("User:alice", "write", "topic:fl")
    assert secured("acl", "list", "-o", "json").json == []
    secured("acl", "add", *rule, "--prefixed")
    secured("acl", "add", "User:*", "all", "topic:flights", "--deny", "--host", "10.0.0.7")
    secured("acl", "add", "User:alice", "describe", "cluster")
    listed = secured("acl", "list", "--resource", "topic:flights", "-o", "json").json
    assert {
        "permission": "allow",
        "principal": "User:alice",
        "host": "*",
        "operation": "write",
        "resource": "topic:fl",
        "pattern": "prefixed",
    } in listed
    assert [row["permission"] for row in listed] == ["allow", "deny"]
    words = ("acl", "explain", "User:alice", "describe", "topic:flights", "-o", "json")
    (allowed,) = secured(*words).json
    assert allowed["allowed"] == "yes"
    assert allowed["rule"] == "ALLOW User:alice from * WRITE on Topic:PREFIXED:fl"
    (denied,) = secured(*words, "--host", "10.0.0.7").json
    assert denied["rule"] == "DENY User:* from 10.0.0.7 ALL on Topic:LITERAL:flights"
    (root,) = secured("acl", "explain", "User:root", "alter", "cluster", "-o", "json").json
    assert root == {
        "allowed": "yes",
        "why": "the principal is one of super.users",
        "rule": "",
    }
    (none,) = secured("acl", "explain", "User:bob", "read", "group:g", "-o", "json").json
    assert (none["allowed"], none["why"]) == ("no", "no ACL allows it")
    secured("acl", "remove", *rule, "--prefixed")
    assert "there is no ACL" in secured.refused("acl", "remove", *rule, "--prefixed")
    assert len(secured("acl", "list", "-o", "json").json) == 2


def test_an_acl_that_may_meet_no_request_is_added_with_a_warning(secured: Command) -> None:
    """On standard error; it is stored, as by Kafka's kafka-acls."""
    rule = ("user:eve", "all", "topic:flights", "--deny", "--host", "localhost")
    error = secured("acl", "add", *rule).error
    assert "may apply to no request: the type of clients is User" in error
    assert "the host 'localhost' is no address" in error
    secured("acl", "remove", *rule)
    assert "cluster:eu is no resource" in secured.misused("acl", "add", *rule[:2], "cluster:eu")


def test_what_is_no_acl_is_refused_before_a_broker_is_asked(secured: Command) -> None:
    """With what is wrong, and what there is."""
    assert "no colon is present" in secured.misused("acl", "add", "alice", "read", "topic:t")
    assert "choose from all, read" in secured.misused("acl", "add", "User:a", "eat", "topic:t")
    assert "TYPE:NAME" in secured.misused("acl", "add", "User:a", "read", "flights")
    assert "write it as User:alice" in secured.misused("acl", "list", "--principal", "alice")
    explain = ("acl", "explain", "User:a", "read", "topic:t", "--host")
    for host in ("300.1.1.1", "*", "localhost"):
        assert f"{host} is no address: brokers know" in secured.misused(*explain, host)


def test_a_broker_without_an_authorizer_says_so(run: Command) -> None:
    """And names the setting."""
    assert "set authorizer.class.name" in run.refused("acl", "list")
