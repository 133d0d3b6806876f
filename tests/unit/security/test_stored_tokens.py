"""Delegation tokens in the store: Kafka's path and JSON of its ZooKeeper days."""

import json

import pytest

from ottla.base.errors import OttlaError
from ottla.security.principal import Principal
from ottla.security.stored import decode_token, encode_token, token_id_of, token_path
from ottla.security.tokens import DelegationToken

PATH = "/delegation_token/tokens/abc"
TOKEN = DelegationToken(
    "abc",
    Principal("User", "CN=a b,O=x"),
    Principal("User", "bob"),
    (Principal("User", "c*~ü"),),
    1,
    3,
    2,
)
STORED = {
    "version": 3,
    "owner": "User%3ACN%3Da%20b%2CO%3Dx",
    "tokenRequester": "User%3Abob",
    "renewers": ["User%3Ac%2A%7E%C3%BC"],
    "issueTimestamp": 1,
    "maxTimestamp": 3,
    "expiryTimestamp": 2,
    "tokenId": "abc",
}


def test_a_token_is_stored_as_kafka_did() -> None:
    """Principals are escaped as by Kafka's Sanitizer; the secret is not there."""
    assert json.loads(encode_token(TOKEN)) == STORED
    assert decode_token(PATH, encode_token(TOKEN)) == TOKEN


def test_a_token_of_an_earlier_kafka_is_read() -> None:
    """Without a requester the owner made it."""
    held = {name: value for name, value in STORED.items() if name != "tokenRequester"}
    assert decode_token(PATH, json.dumps({**held, "version": 1}).encode()) == TOKEN._replace(
        requester=TOKEN.owner
    )


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"[]",
        b"{}",
        json.dumps({**STORED, "tokenId": "other"}).encode(),
        json.dumps({**STORED, "owner": "nocolon"}).encode(),
        json.dumps({**STORED, "renewers": 7}).encode(),
        json.dumps({**STORED, "expiryTimestamp": "soon"}).encode(),
    ],
)
def test_a_node_that_holds_no_token_is_refused(data: bytes) -> None:
    """The error names it."""
    with pytest.raises(OttlaError, match=PATH):
        decode_token(PATH, data)


def test_paths_and_ids_belong_together() -> None:
    """Other nodes are none of tokens."""
    assert token_path("abc") == PATH
    assert [token_id_of(path) for path in (PATH, "/delegation_token/tokens", "topics/abc")] == [
        "abc",
        None,
        None,
    ]
