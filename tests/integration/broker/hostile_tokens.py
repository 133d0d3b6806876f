"""Messages of OAUTHBEARER as a hostile stranger, or a careless issuer, makes them."""

import base64
import hashlib
import hmac
import json
import math
import zlib
from collections.abc import Iterator

from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from joserfc import jws
from joserfc.jwk import RSAKey
from rig.issuer import AUDIENCE, Issuer, new_key, signed

from ottla.security.sasl.bearer import write_bearer

_HEADER = {"alg": "RS256", "kid": "key-1"}
_KIDS = (
    "../../../../dev/null",
    "k" * 999,
    "k" * 1001,
    "k" * 9000,
    "\0",
    "key-1\0",
    "' OR 1=1 --",
    "\ud800",
    ["key-1"],
    {"a": 1},
    0,
    True,
    "%s%n{0}",
)
# Values of claims with which a token, though it is signed, lets no client in.
_CLAIMS: dict[str, tuple[object, ...]] = {
    "exp": (
        *(0, -1, -1e308, "soon", "1e12", [9e9], {}, True, False, math.nan, math.inf, -math.inf),
        *(1e12, 1e300, 10**400, None),
    ),
    "nbf": (9e9, "later", math.nan, 10**400, []),
    "iat": (None, "now", math.nan, 10**400, [], True),
    "aud": (
        *("billing", "", None, [], [[AUDIENCE]], {AUDIENCE: 1}, 7, f"{AUDIENCE} "),
        *(AUDIENCE.upper(), ["x"] * 2000, "x" * 9000),
    ),
    "iss": ("https://other", "", None, 7, ["https://issuer.example"], "x" * 9000),
    "sub": (
        *("", " ", None, 7, [], {}, True, "a\nb", "a\0b", "\u202ebob", "\u200bbob", "bo\u00adb"),
        *("\ud800", "x" * 1001, "x" * 9000, "a\x1b[31m", "\u2028"),
    ),
    "scope": (["a", "a"], [7], [""]),
}
# Those with which it does.
_GOOD_CLAIMS: dict[str, tuple[object, ...]] = {
    "exp": (9e9 + 0.5, 999_999_999_999),
    "iat": (1.25,),
    "aud": (["x", AUDIENCE],),
    "sub": ("User:admin", "*", "<default>", "a,b=c;d", "é", "../x", "%00"),
    "scope": (7, "a b"),
}


def good(issuer: Issuer, now_s: float) -> Iterator[tuple[str, bytes]]:
    """Strange messages that let alice in, or another subject of the issuer."""
    for name, values in _GOOD_CLAIMS.items():
        for value in values:
            yield f"{name} {value}", write_bearer(issuer.token("alice", now_s, **{name: value}))
    yield "an extension", write_bearer(issuer.token("alice", now_s), {"traceId": "7"})


def hostile(issuer: Issuer, now_s: float) -> Iterator[tuple[str, bytes]]:
    """What each is, and the message; none of them may let a client in."""
    for what, token in (
        *_signed_by_others(issuer, now_s),
        *_wrong_claims(issuer, now_s),
        *_no_tokens(issuer, now_s),
    ):
        yield what, write_bearer(token)
    yield from _wrong_messages(write_bearer(issuer.token("alice", now_s)))


def _signed_by_others(issuer: Issuer, now_s: float) -> Iterator[tuple[str, str]]:
    key, claims = issuer.keys[0], issuer.claims("admin", now_s)
    assert isinstance(key, RSAKey)
    algorithms: tuple[object, ...] = ("none", "None", "nOnE", "", None, 1, [], {"a": 1})
    for algorithm in algorithms:
        for signature in ("", "AAAA"):
            yield f"alg {algorithm}", _raw(claims, signature, alg=algorithm)
    # What a stranger can know of the key, as the secret of an HMAC.
    secrets = {
        "PEM": key.as_bytes("PEM", private=False),
        "DER": key.as_bytes("DER", private=False),
        "JWK": json.dumps(key.as_dict(private=False)).encode(),
        "nothing": b"",
    }
    for name, secret in secrets.items():
        for algorithm, digest in (("HS256", hashlib.sha256), ("HS512", hashlib.sha512)):
            text = _raw(claims, "", alg=algorithm).removesuffix(".")
            mac = hmac.digest(secret, text.encode(), digest)
            yield f"{algorithm} by {name}", f"{text}.{_encoded(mac)}"
    for kid in _KIDS:
        yield f"kid {kid!r:.20}", _raw(claims, kid=kid)
    own = new_key("key-1", "RS256")
    for more in (
        {"jwk": own.as_dict(private=False)},
        {"jku": "https://localhost/keys"},
        {"x5u": "https://localhost/keys"},
        {"x5c": ["AAAA"]},
        {"zip": "DEF"},
    ):
        yield f"header {list(more)}", signed(claims, own, "RS256", **more)
    for header in (
        {"crit": ["exp"]},
        {"crit": []},
        {"b64": False},
        {"b64": False, "crit": ["b64"]},
    ):
        yield f"header {header}", _raw(claims, **header)
    twice = _encoded(b'{"alg":"RS256","alg":"none"}')
    yield "alg twice", f"{twice}.{_encoded(json.dumps(claims).encode())}."


def _wrong_claims(issuer: Issuer, now_s: float) -> Iterator[tuple[str, str]]:
    for name, values in _CLAIMS.items():
        for value in values:
            yield f"{name} {value!r:.20}", issuer.token("alice", now_s, **{name: value})
    yield "expired", issuer.token("alice", now_s - 3600)
    claims = json.dumps(issuer.claims("alice", now_s)).encode()
    for payload in (
        *(b"[]", b"null", b"7", b'"x"', b"", b"{", b"\xff\xfe", b"[" * 9000, b'{"a":' * 1500),
        *(b'{"sub":"alice","exp":%s}' % (b"9" * 5000), claims * 2, claims[:-1] + b',"sub":"bob"}'),
        *(claims[:-1] + b',"more":{"a":1,"a":1}}', claims.decode().encode("utf-16")),
    ):
        yield f"claims {payload[:9]!r}", _text(issuer, payload)


def _no_tokens(issuer: Issuer, now_s: float) -> Iterator[tuple[str, str]]:
    token, claims = issuer.token("alice", now_s), issuer.claims("alice", now_s)
    for text in (
        *("", ".", "..", "....", "a.b", f"{token}.", f"{token}.x", f".{token}", f"{token}=A"),
        *(token.replace(".", ".."), token[:-3], f"{token}AA", token.upper(), "-.-.-", "~.~.~"),
        *("a" * 16_000, "." * 16_000, "A" * 16_385, "A" * 60_000),
    ):
        yield f"no token {text[:9]}", text
    bomb = _encoded(zlib.compress(bytes(8 << 20), 9))
    for algorithm in ("dir", "RSA-OAEP", "A128KW", "PBES2-HS256+A128KW", "ECDH-ES"):
        more = {"enc": "A128GCM", "zip": "DEF", "p2c": 2**31 - 1, "p2s": "AAAA"}
        header = _encoded(json.dumps({**_HEADER, **more, "alg": algorithm}).encode())
        yield f"JWE {algorithm}", f"{header}..AAAA.{bomb}.AAAA"
        yield f"JWE {algorithm} of three parts", f"{header}.{bomb}.AAAA"
    yield "a token in a token", _text(issuer, token.encode())
    yield "a long token", issuer.token("alice", now_s, more="x" * 13_000)
    yield "a long signature", _raw(claims, "A" * 15_000)
    yield "a long header", _raw(claims, more="x" * 9000)
    yield "a header of lists", _raw(claims, more=[[[], []]] * 1200)


def _wrong_messages(message: bytes) -> Iterator[tuple[str, bytes]]:
    for more in (b"auth=Bearer x", b"a1=7", b"=7", "é=7".encode(), b"abc", b"a=\x02", b"a=1\1a=2"):
        yield f"extension {more!r}", message[:-1] + more + b"\1\1"
    for header in (b"n,a=bob,", b"n,a==,", b"y,,", b"p=tls-unique,,", b"n,a=\0,"):
        yield f"header {header!r}", message.replace(b"n,,", header)
    yield "a long name", message.replace(b"n,,", b"n,a=%s," % (b"=2C" * 4000))
    yield "an end too few", message[:-1]
    for content in (
        *(b"\1" * 20_000, b"," * 20_000, bytes(range(256)) * 70, b"", b"\1"),
        b"n,,\1auth=Bearer %s!\1\1" % (b"a" * 8000 + b"=" * 8000),
        b"n,,\1auth=Bearer %s\1\1" % (b"A" * (1 << 16)),
        b"n,,\1auth=Bearer %s\1\1" % (b"A" * (1 << 20)),
    ):
        yield f"{len(content)} bytes {content[:9]!r}", content


def _raw(claims: object, signature: str = "AAAA", **header: object) -> str:
    head = json.dumps({**_HEADER, **header}).encode()
    return f"{_encoded(head)}.{_encoded(json.dumps(claims).encode())}.{signature}"


def _text(issuer: Issuer, payload: bytes) -> str:
    """Any bytes, signed by the issuer."""
    key = issuer.keys[0]
    assert isinstance(key.private_key, RSAPrivateKey)
    return jws.serialize_compact(_HEADER, payload, key, algorithms=["RS256"])


def _encoded(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()
