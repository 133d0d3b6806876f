"""The keys of an issuer, and the verification of tokens by them.

This is the only module that imports `joserfc`, from the extra `security`. The key fields in a
token's own header (`jwk`, `jku`, `x5u`) are ignored: a token only selects one of the issuer's keys.
"""

import json
from base64 import urlsafe_b64decode
from collections.abc import Callable, Mapping
from itertools import islice
from typing import Any, Final, NamedTuple

from joserfc.errors import JoseError
from joserfc.jwk import ECKey, Key, OKPKey, RSAKey
from joserfc.jws import JWSRegistry, deserialize_compact

from ottla.base.errors import shortened
from ottla.security.jwt.claims import Claims, TokenPolicy, check_claims
from ottla.security.jwt.header import Algorithm, read_header, read_object
from ottla.security.sasl.bearer import RefusedToken

_KEYS_MAX: Final = 100
# The most keys tried for a token that names none, because strangers can send such tokens.
_TRIED_MAX: Final = 10
_RSA_BITS: Final = range(2048, 8193)
_CURVES: Final = {
    "P-256": frozenset({Algorithm.ES256}),
    "P-384": frozenset({Algorithm.ES384}),
    "P-521": frozenset({Algorithm.ES512}),
}
_OF_RSA: Final = frozenset(each for each in Algorithm if each.name.startswith(("RS", "PS")))
_OF_ED25519: Final = frozenset({Algorithm.EdDSA, Algorithm.Ed25519})


class PublicKey(NamedTuple):
    """A key that verifies signatures made with any of its algorithms."""

    key_id: str | None
    algorithms: frozenset[Algorithm]
    # The payload of a token with a good signature; None for a bad one.
    verified: Callable[[str], bytes | None]


class PublicKeys(NamedTuple):
    """The keys of an issuer, and why other keys in its document are not used."""

    usable: tuple[PublicKey, ...]
    ignored: tuple[str, ...]

    def candidates(self, key_id: str | None, algorithm: Algorithm) -> list[PublicKey]:
        """Return the keys that may have signed a token.

        If the token names no key, these are the first keys of its algorithm.
        """
        fitting = (
            key
            for key in self.usable
            if algorithm in key.algorithms and key_id in (None, key.key_id)
        )
        return list(islice(fitting, _TRIED_MAX))

    def has(self, key_id: str | None) -> bool:
        """Whether there is a key with this id; without an id, any key."""
        return any(key_id in (None, key.key_id) for key in self.usable)


def read_keys(text: bytes) -> PublicKeys:
    """Read the keys of a JWKS document. Raises ValueError if it is not one.

    A document without usable keys is valid: with it an issuer withdraws its keys.
    """
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        raise ValueError("it is no JSON") from None
    found = document.get("keys") if isinstance(document, dict) else None
    if not isinstance(found, list) or len(found) > _KEYS_MAX:
        raise ValueError(f'it is to be {{"keys": [...]}} with at most {_KEYS_MAX} keys')
    usable: list[PublicKey] = []
    ignored: list[str] = []
    for number, each in enumerate(found):
        try:
            usable.append(_read_key(each))
        except ValueError as error:
            ignored.append(f"key {number}: {error}")
    return PublicKeys(tuple(usable), tuple(ignored))


def _read_key(document: object) -> PublicKey:
    """Read one key.

    Raises ValueError without its values, since the document may contain a private key.
    """
    if not isinstance(document, dict):
        raise ValueError("it is no object")
    key_id, named = document.get("kid"), document.get("alg")
    if key_id is not None and not isinstance(key_id, str):
        raise ValueError("its kid is no text")
    operations = document.get("key_ops")
    if document.get("use", "sig") != "sig" or (
        operations is not None and not (isinstance(operations, list) and "verify" in operations)
    ):
        raise ValueError("it is not for signatures")
    key, algorithms = _import_key(document)
    if named is not None:
        algorithms = frozenset(each for each in algorithms if each.name == named)
    if not algorithms:
        raise ValueError("its algorithm does not fit its type")
    return PublicKey(key_id, algorithms, _verifier(key, algorithms))


def _import_key(document: Mapping[str, Any]) -> tuple[Key, frozenset[Algorithm]]:
    # Only the public part; the rest is not needed.
    parts = {name: document.get(name) for name in ("kty", "crv", "n", "e", "x", "y")}
    given: Any = {name: value for name, value in parts.items() if isinstance(value, str)}
    match given.get("kty"), given.get("crv"):
        case "RSA", _:
            if _bits(given.get("n", "")) not in _RSA_BITS:
                raise ValueError("an RSA key is to have 2048 to 8192 bits")
            return _imported(RSAKey.import_key, given), _OF_RSA
        case "EC", str(curve) if curve in _CURVES:
            return _imported(ECKey.import_key, given), _CURVES[curve]
        case "OKP", "Ed25519":
            return _imported(OKPKey.import_key, given), _OF_ED25519
        case "oct", _:
            raise ValueError("it is a shared secret, which brokers never use for tokens")
    raise ValueError("its type or its curve is not there")


def _bits(number: str) -> int:
    """Return the number of bits of an encoded number, without leading zeros; 0 for none."""
    try:
        return int.from_bytes(urlsafe_b64decode(number + "=" * (-len(number) % 4))).bit_length()
    except ValueError:
        return 0


def _imported(read: Callable[[Any], Key], given: object) -> Key:
    try:
        return read(given)
    except (JoseError, TypeError, ValueError, OverflowError):
        raise ValueError("it cannot be read") from None


def _verifier(key: Key, algorithms: frozenset[Algorithm]) -> Callable[[str], bytes | None]:
    registry = _Registry(algorithms=[each.name for each in algorithms], strict_check_header=False)

    def verified(token: str) -> bytes | None:
        try:
            return deserialize_compact(token, key, registry=registry).payload
        except (JoseError, ValueError):
            return None

    return verified


class _Registry(JWSRegistry):
    """Accepts longer headers, and `EdDSA`, the older name of Ed25519."""

    max_header_length = 4096
    max_signature_length = 4096
    # Without the warning that the older name gives.
    algorithms = {**JWSRegistry.algorithms, "EdDSA": JWSRegistry.algorithms["Ed25519"]}  # noqa: RUF012  As in the class above.


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
