"""The header of a token: the claimed algorithm and key of its signature."""

import base64
import json
from enum import Enum, auto
from typing import Final, NamedTuple

from ottla.base.errors import shortened
from ottla.security.sasl.bearer import RefusedToken


def read_object(content: bytes) -> dict[str, object] | None:
    """Parse a JSON object; return None if it is invalid.

    Objects with a repeated name are refused (RFC 7519, 4), as by Kafka, because another reader may
    use the first value.
    """
    try:
        found = json.loads(content.decode(), object_pairs_hook=_unique)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name stands twice")
    return found


_KEY_ID_CHARACTERS_MAX: Final = 1000


class Algorithm(Enum):
    """Signatures by a private key. Shared secrets (HS256) and `none` are never accepted."""

    RS256 = auto()
    RS384 = auto()
    RS512 = auto()
    PS256 = auto()
    PS384 = auto()
    PS512 = auto()
    ES256 = auto()
    ES384 = auto()
    ES512 = auto()
    EdDSA = auto()
    Ed25519 = auto()


class TokenHeader(NamedTuple):
    """A token's claims about its signature, before it is verified."""

    algorithm: Algorithm
    key_id: str | None


def read_header(token: str) -> TokenHeader:
    """Read a header. Raises RefusedToken.

    Ignores `jwk`, `jku`, `x5c` and `x5u`: they name no keys here.
    """
    parts = token.split(".")
    header = part_of_token(parts[0]) if len(parts) == 3 else None
    if header is None:
        raise RefusedToken(
            "its token is no signed JWT, which has three parts: send the client to the issuer of "
            "sasl.oauthbearer.jwks.endpoint.url",
            "no JWT",
        )
    name, key_id = header.get("alg"), header.get("kid")
    algorithm = Algorithm.__members__.get(name) if isinstance(name, str) else None
    if algorithm is None:
        raise RefusedToken(
            f"its token is signed with algorithm {shortened(repr(name))}: unsigned tokens and "
            "shared secrets are never accepted; have the issuer sign with a private key (RS256)",
            "algorithm",
        )
    if "crit" in header:
        raise RefusedToken("the header of its token has `crit`, which is not served", "crit")
    if key_id is not None and not (
        isinstance(key_id, str) and len(key_id) <= _KEY_ID_CHARACTERS_MAX
    ):
        raise RefusedToken("the `kid` of its token is no text, or too long", "kid")
    return TokenHeader(algorithm, key_id)


def part_of_token(part: str) -> dict[str, object] | None:
    """Return the JSON object in a part of a token; None if there is none."""
    try:
        content = base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))
    except ValueError:
        return None
    return read_object(content)
