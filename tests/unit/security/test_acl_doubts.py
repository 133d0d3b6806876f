"""Typos in ACLs: what can be stored and meets no request is said."""

import pytest

from ottla.security.acl import Acl, ResourcePattern
from ottla.security.acl_doubts import acl_doubts
from ottla.security.names import AclOperation, AclResource, PatternType, Permission

TOPIC = ResourcePattern(AclResource.TOPIC, "flights")


def doubts(principal="User:bob", host="*", operation=AclOperation.READ, pattern=TOPIC):
    return acl_doubts(Acl(pattern, principal, host, operation, Permission.DENY))


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"principal": "user:bob"}, "write User:bob"),
        ({"principal": "User:"}, "has no name"),
        ({"principal": "User:bob "}, "blanks and quotes"),
        ({"principal": 'User:"bob"'}, "blanks and quotes"),
        ({"principal": "User:bob;User:eve"}, "one ACL for each"),
        ({"principal": "User:al*"}, "only User:* is for more than one"),
        ({"host": "10.0.0.0/33"}, "is no address"),
        ({"host": "localhost"}, "is no address"),
        ({"host": "10.0.0.1 "}, "is no address"),
        ({"operation": AclOperation.CREATE_TOKENS}, "only for alter, alter-configs, create"),
        ({"pattern": ResourcePattern(AclResource.TOPIC, "fl*")}, "--prefixed"),
        ({"pattern": ResourcePattern(AclResource.TOPIC, "*", PatternType.PREFIXED)}, "--prefixed"),
    ],
)
def test_an_acl_that_meets_no_request_is_said(given, words):
    """A DENY of them would look like protection."""
    (doubt,) = doubts(**given)
    assert words in doubt


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"principal": "User:*", "host": "10.0.0.7"},
        {"host": "10.0.0.0/8"},
        {"principal": "User:CN=bob,OU=log; tools", "host": "fe80::1"},
        {"pattern": ResourcePattern(AclResource.TOPIC, "*")},
        {"pattern": ResourcePattern(AclResource.TOPIC, "fl-", PatternType.PREFIXED)},
        {"pattern": ResourcePattern(AclResource.GROUP, "any name*")},
        {"operation": AclOperation.ALL},
    ],
)
def test_usual_acls_are_beyond_doubt(given):
    """Groups may have any name; a client's certificate, too."""
    assert doubts(**given) == []


@pytest.mark.parametrize("kind", [kind for kind in AclResource if kind > AclResource.ANY])
def test_describing_is_for_all_that_has_a_description(kind):
    """Each type of resource has operations; those of users are about tokens alone."""
    found = doubts(operation=AclOperation.DESCRIBE, pattern=ResourcePattern(kind, "x"))
    assert bool(found) == (kind is AclResource.USER)
