"""Delegation tokens in the store, with the path and JSON that Kafka used in ZooKeeper.

The secrets of tokens are not stored.
"""

from typing import Any
from urllib.parse import quote, unquote_plus

from ottla.base.errors import OttlaError
from ottla.metadata.nodes import broken, dump, load
from ottla.security.principal import Principal, parse_principal
from ottla.security.tokens import DelegationToken

TOKENS = "/delegation_token/tokens"
# Kafka's version with a requester (KIP-373); versions 1 and 2 have none.
_VERSION = 3


def token_path(token_id: str) -> str:
    """Return the path of a token."""
    return f"{TOKENS}/{token_id}"


def token_id_of(path: str) -> str | None:
    """Return the id of the token at `path`; None for other nodes."""
    parent, _, name = path.rpartition("/")
    return name if parent == TOKENS and name else None


def encode_token(token: DelegationToken) -> bytes:
    """The data of a token's node."""
    return dump(
        {
            "version": _VERSION,
            "owner": _escaped(token.owner),
            "tokenRequester": _escaped(token.requester),
            "renewers": [_escaped(one) for one in token.renewers],
            "issueTimestamp": token.issued_ms,
            "maxTimestamp": token.max_ms,
            "expiryTimestamp": token.expires_ms,
            "tokenId": token.id,
        }
    )


def decode_token(path: str, data: bytes) -> DelegationToken:
    """Return the token of a node. Raises OttlaError if its data is invalid."""
    held = load(path, data)
    token_id = token_id_of(path)
    try:
        if token_id is None or held["tokenId"] != token_id:
            raise ValueError("it is of another token")
        owner = _principal(held["owner"])
        return DelegationToken(
            token_id,
            owner,
            _principal(held["tokenRequester"]) if "tokenRequester" in held else owner,
            tuple(_principal(one) for one in held["renewers"]),
            int(held["issueTimestamp"]),
            int(held["maxTimestamp"]),
            int(held["expiryTimestamp"]),
        )
    except (KeyError, TypeError, ValueError, OttlaError) as error:
        raise broken(path, error) from error


def _escaped(principal: Principal) -> str:
    return quote(str(principal), safe="").replace("~", "%7E")


def _principal(text: Any) -> Principal:
    return parse_principal(unquote_plus(str(text)))
