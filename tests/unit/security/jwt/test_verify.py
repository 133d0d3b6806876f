"""Which tokens a broker believes."""

import base64
import hashlib
import hmac
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from joserfc import jws
from rig.issuer import AUDIENCE, Issuer, new_key, signed

from ottla.security.jwt.claims import Claims, TokenPolicy
from ottla.security.jwt.verify import PublicKeys, UnknownKey, read_keys, verify_token
from ottla.security.sasl.bearer import RefusedToken

NOW_S = 1_800_000_000
ISSUER = Issuer()
KEYS = read_keys(ISSUER.jwks())
POLICY = TokenPolicy(frozenset({AUDIENCE}), ISSUER.name)


def encoded(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


def judged(token: str, policy: TokenPolicy = POLICY, keys: PublicKeys = KEYS) -> Claims:
    return verify_token(token, keys, policy, NOW_S)


def refusal(token: str, policy: TokenPolicy = POLICY, keys: PublicKeys = KEYS) -> str:
    """Why a token is refused, for the log, in which no part of the token stands."""
    with pytest.raises(RefusedToken) as raised:
        judged(token, policy, keys)
    assert raised.value.message == '{"status":"invalid_token"}'
    assert all(part not in raised.value.cause for part in token.split(".") if len(part) > 9)
    return raised.value.cause


def token(**claims: object) -> str:
    return ISSUER.token("alice", NOW_S, **claims)


@pytest.mark.parametrize(
    "algorithm",
    ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "Ed25519"],
)
def test_a_signature_by_any_private_key_is_good(algorithm: str) -> None:
    """Of each algorithm that needs one."""
    issuer = Issuer(algorithm=algorithm)
    claims = judged(issuer.token("alice", NOW_S), keys=read_keys(issuer.jwks()))
    assert claims == Claims("alice", NOW_S + 600, frozenset())


@pytest.mark.filterwarnings("ignore:EdDSA is deprecated")
def test_the_older_name_of_ed25519_is_read() -> None:
    """Most issuers still write EdDSA."""
    issuer = Issuer(algorithm="Ed25519")
    old = signed(issuer.claims("alice", NOW_S), issuer.keys[0], "EdDSA")
    assert judged(old, keys=read_keys(issuer.jwks())).subject == "alice"


@pytest.mark.parametrize(
    ("claims", "words"),
    [
        ({"iat": NOW_S - 99, "exp": NOW_S - 30}, "expired 30 s ago"),
        ({"exp": None}, "no claim exp"),
        ({"exp": "soon"}, "claim exp of its token is 'soon'"),
        ({"exp": True}, "claim exp"),
        ({"exp": float("inf")}, "claim exp"),
        ({"exp": 10**400}, "claim exp"),
        ({"nbf": NOW_S + 31}, "valid only in 31 s"),
        ({"nbf": "later"}, "claim nbf"),
        ({"iat": None}, "no claim iat"),
        ({"iss": "https://other.example"}, "of issuer 'https://other.example'"),
        ({"iss": None}, "of issuer None"),
        ({"aud": "billing"}, "for audience 'billing'"),
        ({"aud": ["billing", 3]}, "for audience ['billing', 3]"),
        ({"aud": None}, "for audience None"),
        ({"aud": {"kafka-cluster": 1}}, "for audience"),
        ({"sub": None}, "no claim sub"),
        ({"sub": "  "}, "no name of a user"),
        ({"sub": 7}, "no name of a user"),
        ({"sub": "a\nb"}, "no name of a user"),
        ({"sub": "x" * 1001}, "no name of a user"),
        ({"scope": ["a", "a"]}, "claim scope"),
        ({"scope": ["a", 7]}, "claim scope"),
        ({"scope": [" "]}, "claim scope"),
        ({"iat": NOW_S + 10, "exp": NOW_S + 9}, "expires before it begins"),
        ({"nbf": NOW_S + 10, "exp": NOW_S + 9}, "expires before it begins"),
    ],
)
def test_a_claim_that_is_wrong_or_missing_is_refused(claims: dict[str, object], words: str) -> None:
    """The log says which, and what to do."""
    assert words in refusal(token(**claims))


def test_clocks_may_differ_by_the_allowed_skew() -> None:
    """Both at the end of a token and at its beginning."""
    assert judged(token(iat=NOW_S - 99, exp=NOW_S - 29)).expires_s == NOW_S - 29
    assert judged(token(nbf=NOW_S + 30)).subject == "alice"
    exact = TokenPolicy(frozenset({AUDIENCE}), ISSUER.name, clock_skew_s=0)
    assert judged(token(exp=NOW_S + 1), exact).subject == "alice"
    assert "expired" in refusal(token(exp=NOW_S), exact)


def test_an_audience_that_was_not_expected_is_refused_as_by_kafka() -> None:
    """Without the setting only tokens for no audience are good; else one must fit."""
    none = TokenPolicy()
    assert "sasl.oauthbearer.expected.audience is not set" in refusal(token(), none)
    assert judged(token(aud=None), none).subject == "alice"
    assert judged(token(aud=["billing", AUDIENCE])).subject == "alice"


def test_other_claims_can_hold_the_name_and_the_scopes() -> None:
    """As the settings say; scopes are a text or a list."""
    policy = TokenPolicy(frozenset({AUDIENCE}), None, "preferred_username", "scp")
    found = judged(token(preferred_username=" bob ", scp="read write"), policy)
    assert (found.subject, found.scopes) == ("bob", {"read", "write"})
    assert judged(token(preferred_username="bob", scp=["a"]), policy).scopes == {"a"}
    assert judged(token(preferred_username="bob", scp=7), policy).scopes == frozenset()


def test_unsigned_tokens_and_shared_secrets_are_refused() -> None:
    """`none`, and the public key as the secret of an HMAC: what confuses types gains nothing."""
    claims = encoded(json.dumps(ISSUER.claims("alice", NOW_S)).encode())
    for algorithm in ("none", "None", "NONE", "", None, 7, ["RS256"]):
        header = encoded(json.dumps({"alg": algorithm, "kid": "key-1"}).encode())
        assert "never accepted" in refusal(f"{header}.{claims}.")
    header = encoded(b'{"alg":"HS256","kid":"key-1"}')
    public = json.dumps(ISSUER.keys[0].as_dict(private=False)).encode()
    for secret in (public, ISSUER.keys[0].as_bytes("PEM", private=False), ISSUER.jwks()):
        mac = hmac.digest(secret, f"{header}.{claims}".encode(), hashlib.sha256)
        assert "never accepted" in refusal(f"{header}.{claims}.{encoded(mac)}")


def test_a_token_cannot_bring_its_own_key() -> None:
    """`jwk`, `jku` and `x5u` of the header are not read."""
    own = new_key("key-1")
    public = own.as_dict(private=False)
    for header in ({"jwk": public}, {"jku": "https://evil.example/keys"}, {"x5u": "https://e.x"}):
        forged = signed(ISSUER.claims("admin", NOW_S), own, "ES256", **header)
        assert "signature of its token" in refusal(forged)


def test_a_key_is_used_for_its_own_algorithms_only() -> None:
    """An RSA key that is for RS256 verifies no PS256, and no other type's signature."""
    issuer = Issuer(algorithm="RS256")
    (document,) = json.loads(issuer.jwks())["keys"]
    keys = read_keys(json.dumps({"keys": [{**document, "alg": "RS256"}]}).encode())
    assert judged(issuer.token("alice", NOW_S), keys=keys).subject == "alice"
    other = signed(issuer.claims("alice", NOW_S), issuer.keys[0], "PS256")
    assert "signature of its token (PS256)" in refusal(other, keys=keys)
    assert "signature of its token (ES256)" in refusal(token(), keys=keys)


def test_a_key_that_is_not_there_may_come() -> None:
    """The refusal says that newer keys may help; for an altered token they would not."""
    issuer = Issuer()
    keys = read_keys(issuer.jwks())
    issuer.rotate()
    with pytest.raises(UnknownKey, match="invalid_token") as raised:
        judged(issuer.token("alice", NOW_S), keys=keys)
    assert "key 'key-2', which is not at sasl.oauthbearer.jwks" in raised.value.cause
    assert judged(issuer.token("alice", NOW_S), keys=read_keys(issuer.jwks())).subject == "alice"
    head, _, signature = token().split(".")
    altered = encoded(json.dumps(ISSUER.claims("admin", NOW_S)).encode())
    with pytest.raises(RefusedToken) as refused:
        judged(f"{head}.{altered}.{signature}")
    assert not isinstance(refused.value, UnknownKey)


def test_keys_without_names_are_tried() -> None:
    """A token that names no key is good if one of its algorithm has signed it."""
    issuer = Issuer(keys=[new_key(None), new_key(None)])
    keys = read_keys(issuer.jwks())
    unnamed = signed(issuer.claims("alice", NOW_S), issuer.keys[1], "ES256", kid=None)
    assert judged(unnamed, keys=keys).subject == "alice"
    with pytest.raises(UnknownKey):
        judged(signed(issuer.claims("alice", NOW_S), new_key(None), "ES256", kid=None), keys=keys)


@pytest.mark.parametrize(
    "bad",
    [
        "",
        "x",
        "a.b",
        "a.b.c.d",
        "..",
        f"{encoded(b'[1]')}.e.e",
        f"{encoded(b'[' * 9000)}.e.e",
        f"{encoded(b'{' + b'x')}.e.e",
    ],
)
def test_what_is_no_jwt_is_refused(bad: str) -> None:
    """However it is made."""
    assert "no signed JWT" in refusal(bad)


@pytest.mark.parametrize(
    ("header", "words"),
    [({"crit": ["exp"]}, "`crit`"), ({"kid": "k" * 1001}, "`kid`"), ({"kid": "%s"}, "key '%s'")],
)
def test_headers_that_are_not_served_are_refused(header: dict[str, object], words: str) -> None:
    """Before any signature is computed."""
    head = encoded(json.dumps({"alg": "ES256", **header}).encode())
    assert words in refusal(f"{head}.e30.AAAA")


def test_a_payload_must_be_claims() -> None:
    """Though its signature is good."""
    for payload in ([1], "x", 7):
        bad = signed(payload, ISSUER.keys[0], "ES256")  # type: ignore[arg-type]
        assert "no claims" in refusal(bad)


def test_no_name_stands_twice() -> None:
    """In claims or header, at any depth: another reader may believe the other value."""
    claims = json.dumps(ISSUER.claims("alice", NOW_S))
    for more in ('"sub":"bob"', '"sub":"alice"', '"more":[{"a":1,"a":2}]'):
        text = f"{claims[:-1]},{more}}}".encode()
        twice = jws.serialize_compact({"alg": "ES256", "kid": "key-1"}, text, ISSUER.keys[0])
        assert "one of them twice" in refusal(twice)
    head = encoded(b'{"alg":"none","alg":"ES256","kid":"key-1"}')
    assert "no signed JWT" in refusal(f"{head}.{encoded(claims.encode())}.AAAA")


@given(st.data())
def test_no_change_of_a_token_is_believed(data: st.DataObject) -> None:
    """Of any character, anywhere: refused, and never with another error."""
    good = token()
    place = data.draw(st.integers(0, len(good) - 1))
    by = data.draw(st.sampled_from("ABCDEFxyz019-_.=+/ \x01é"))
    changed = good[:place] + by + good[place + 1 :]
    try:
        found = judged(changed)
    except RefusedToken:
        return
    # The last character of a signature has bits that stand for nothing.
    assert changed == good or (place == len(good) - 1 and found.subject == "alice")


@pytest.mark.parametrize(
    ("document", "words"),
    [
        (b"", "no JSON"),
        (b"[]", '{"keys": [...]}'),
        (b'{"keys": 7}', '{"keys": [...]}'),
        (b'{"keys": [%s7]}' % (b"7," * 100), "at most 100 keys"),
        (b"[" * 100_000, "no JSON"),
    ],
)
def test_what_is_no_document_of_keys_is_refused(document: bytes, words: str) -> None:
    """The keys of the last good one stay."""
    with pytest.raises(ValueError, match=r".") as raised:
        read_keys(document)
    assert words in str(raised.value)


@pytest.mark.parametrize(
    ("key", "words"),
    [
        (b"7", "it is no object"),
        (b'{"kty": "oct", "k": "c2VjcmV0"}', "a shared secret"),
        (b'{"kty": "RSA", "n": "x", "e": "AQAB", "use": "enc"}', "not for signatures"),
        (b'{"kty": "RSA", "n": "%s", "e": "AA"}' % (b"_" * 342), "cannot be read"),
        (b'{"kty": "RSA"}', "an RSA key is to have 2048"),
        (b'{"kty": "RSA", "n": "%s", "e": "AQAB"}' % (b"!" * 342), "an RSA key is to have 2048"),
        (b'{"kty": "RSA", "n": "%s", "e": "AQAB"}' % (b"_" * 1367), "an RSA key is to have 2048"),
        (b'{"kty": "EC", "crv": "P-256", "x": "AA", "y": "AA"}', "cannot be read"),
        (b'{"kty": "EC", "crv": "secp256k1"}', "its type or its curve"),
    ],
)
def test_a_key_that_cannot_be_used_is_left_out(key: bytes, words: str) -> None:
    """With the cause, and no secret; a document may hold no other."""
    keys = read_keys(b'{"keys": [%s]}' % key)
    (why,) = keys.ignored
    assert words in why
    assert "c2VjcmV0" not in why
    assert keys.usable == ()


def test_an_issuer_withdraws_its_keys_by_a_document_without_any() -> None:
    """Tokens of the former keys are those of an unknown key then, as with Kafka."""
    assert read_keys(b'{"keys": []}') == PublicKeys((), ())
    with pytest.raises(UnknownKey):
        judged(token(), keys=read_keys(b'{"keys": []}'))


def test_keys_that_are_not_safe_are_left_out() -> None:
    """A short RSA key, also behind zeros, and one of another use; the others serve."""
    modulus = ((1 << 1199) + 1).to_bytes(150)
    short = {"kty": "RSA", "n": encoded(modulus), "e": "AQAB"}
    long = {"kty": "RSA", "n": encoded(bytes(106) + modulus), "e": "AQAB"}
    good = ISSUER.keys[0].as_dict(private=True)
    keys = read_keys(json.dumps({"keys": [short, long, good, {**good, "alg": "RS256"}]}).encode())
    assert [key.key_id for key in keys.usable] == ["key-1"]
    assert keys.ignored == (
        "key 0: an RSA key is to have 2048 to 8192 bits",
        "key 1: an RSA key is to have 2048 to 8192 bits",
        "key 3: its algorithm does not fit its type",
    )


def test_a_token_without_a_key_id_costs_ten_signatures_at_most() -> None:
    """Strangers can send such tokens to a broker whose issuer has many keys."""
    issuer = Issuer(keys=[new_key(None) for _ in range(11)])
    keys = read_keys(issuer.jwks())
    claims = issuer.claims("alice", NOW_S)
    tokens = [signed(claims, key, "ES256", kid=None) for key in issuer.keys[9:]]
    assert judged(tokens[0], keys=keys).subject == "alice"
    with pytest.raises(UnknownKey):
        judged(tokens[1], keys=keys)
