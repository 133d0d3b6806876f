"""Verifies a token: its header, its signature by the issuer's keys, its claims."""

from ottla.base.errors import shortened
from ottla.security.jwt.claims import Claims, TokenPolicy, check_claims
from ottla.security.jwt.header import read_header, read_object
from ottla.security.jwt.keys import PublicKeys
from ottla.security.sasl.bearer import RefusedToken


class UnknownKey(RefusedToken):
    """The token's key was not among the issuer's keys when they were last read."""

    def __init__(self, key_id: str | None) -> None:
        named = "a key without a name" if key_id is None else f"key {shortened(repr(key_id))}"
        super().__init__(
            f"its token is signed with {named}, which is not at "
            "sasl.oauthbearer.jwks.endpoint.url: the token is of another issuer, or the issuer has "
            "not published the key",
            "unknown key",
        )


def verify_token(token: str, keys: PublicKeys, policy: TokenPolicy, now_s: float) -> Claims:
    """Return the claims of a valid token.

    Raises RefusedToken; UnknownKey if newer keys may help.
    """
    header = read_header(token)
    candidates = keys.candidates(header.key_id, header.algorithm)
    if not candidates and not keys.has(header.key_id):
        raise UnknownKey(header.key_id)
    for key in candidates:
        payload = key.verified(token)
        if payload is not None:
            return check_claims(_claims(payload), policy, now_s)
    if header.key_id is None:
        raise UnknownKey(None)
    raise RefusedToken(
        f"the signature of its token ({header.algorithm.name}) is not of the issuer's key: the "
        "token was altered, or is of another issuer",
        "signature",
    )


def _claims(payload: bytes) -> dict[str, object]:
    found = read_object(payload)
    if found is None:
        raise RefusedToken(
            "its token has no claims, or one of them twice: have the issuer send a JWT", "no claims"
        )
    return found
