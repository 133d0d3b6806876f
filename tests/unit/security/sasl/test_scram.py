"""SCRAM against the vectors of RFC 7677, other implementations' messages, and forgery."""

import base64
import hashlib
import hmac
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.base.errors import ErrorCode
from ottla.security.sasl.client import ScramClient
from ottla.security.sasl.failures import AuthenticationFailed
from ottla.security.sasl.scram_keys import (
    ScramCredential,
    ScramMechanism,
    client_proof,
    credential_of,
    is_proof,
    mac,
    salted_password,
)
from ottla.security.sasl.scram_messages import token_in
from ottla.security.sasl.scram_server import ScramServer

SHA_256 = ScramMechanism.SCRAM_SHA_256
SALT = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
NONCE = b"n" * 24
OWN = base64.b64encode(NONCE).decode()


def credential(password: str, mechanism: ScramMechanism = SHA_256) -> ScramCredential:
    salted = salted_password(mechanism, password, SALT, 4096)
    return credential_of(mechanism, salted, SALT, 4096)


def server(mechanism: ScramMechanism = SHA_256, **passwords: str) -> ScramServer:
    known = {user: credential(password, mechanism) for user, password in passwords.items()}
    return ScramServer(mechanism, lambda user, _token: known.get(user), NONCE, b"secret")


def client(user: str, password: str, mechanism: ScramMechanism = SHA_256) -> ScramClient:
    return ScramClient(mechanism, user, password, "clientnonce", {})


def log_in(one: ScramServer, other: ScramClient) -> None:
    final = other.step(one.step(other.first))
    assert other.step(one.step(final)) == b""


def test_the_example_of_rfc_7677() -> None:
    """Proof and signature of the exchange that section 3 prints."""
    signed = (
        b"n=user,r=rOprNGfwEbeRWgbNEkqO,"
        b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096,"
        b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
    )
    salted = salted_password(SHA_256, "pencil", SALT, 4096)
    proof = client_proof(SHA_256, salted, signed)
    assert base64.b64encode(proof) == b"dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    kept = credential("pencil")
    assert is_proof(SHA_256, kept, signed, proof)
    signature = base64.b64encode(mac(SHA_256, kept.server_key, signed))
    assert signature == b"6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


@given(
    st.text(min_size=1, max_size=20).filter(lambda text: "\0" not in text and text.isprintable())
)
def test_client_and_server_agree_on_any_name(user: str) -> None:
    """Commas and signs of equality are escaped."""
    one = ScramServer(SHA_256, lambda _user, _token: PENCIL, NONCE, b"secret")
    log_in(one, client(user, "pencil"))
    assert one.user == user


PENCIL = credential("pencil")


@pytest.mark.parametrize("mechanism", ScramMechanism)
def test_the_right_password_logs_in(mechanism: ScramMechanism) -> None:
    """With either hash."""
    one = server(mechanism, alice="wonder,land=")
    log_in(one, client("alice", "wonder,land=", mechanism))
    assert one.user == "alice"


def _refusal(one: ScramServer, *messages: bytes) -> AuthenticationFailed:
    *before, last = messages
    for message in before:
        one.step(message)
    with pytest.raises(AuthenticationFailed) as error:
        one.step(last)
    assert one.user is None
    return error.value


def test_an_unknown_user_is_told_nothing_that_a_wrong_password_is_not() -> None:
    """The same steps, the same words, a salt that stays the same; the log knows the difference."""
    wrong, unknown = client("alice", "x"), client("nobody", "x")
    here, again, known = server(alice="y"), server(alice="y"), server(alice="y")
    first = here.step(unknown.first)
    assert first == again.step(unknown.first)
    unknown_error = _refusal(here, unknown.step(first))
    wrong_error = _refusal(known, wrong.step(known.step(wrong.first)))
    assert unknown_error.message == wrong_error.message
    assert unknown_error.code is ErrorCode.SASL_AUTHENTICATION_FAILED
    assert "no user 'nobody'" in unknown_error.cause
    assert "another password" in wrong_error.cause


@pytest.mark.parametrize(
    ("old", "new", "cause"),
    [
        (f"r=clientnonce{OWN}", f"r=x{OWN}", "nonce"),
        # Kafka once took whatever ended with its own nonce (CVE-2024-56128).
        (f"r=clientnonce{OWN}", f"r=xclientnonce{OWN}", "nonce"),
        (f"r=clientnonce{OWN}", "r=clientnonce", "nonce"),
        ("c=biws", "c=eSws", "binding"),
        ("c=biws", "c=biwsAAAA", "binding"),
        ("c=biws,", "", "where they should be"),
        (",p=", ",p=AAAA", "proof|Base64"),
    ],
)
def test_a_final_message_that_was_altered_is_refused(old: str, new: str, cause: str) -> None:
    """Each part of it counts."""
    one, other = server(alice="y"), client("alice", "y")
    final = other.step(one.step(other.first)).decode()
    assert old in final
    error = _refusal(one, final.replace(old, new).encode())
    assert any(word in error.cause for word in cause.split("|"))


def test_a_forged_proof_does_not_pass_when_the_nonce_is_right() -> None:
    """An altered nonce has to be signed again, which needs the password."""
    one = server(alice="y")
    first = one.step(b"n,,n=alice,r=abc")
    nonce = first.split(b",")[0]
    proof = base64.b64encode(hmac.digest(b"y", first, hashlib.sha256))
    assert "another password" in _refusal(one, b"c=biws," + nonce + b",p=" + proof).cause


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"\xff\xfe",
        b"n,,",
        b"n,,r=abc,n=alice",
        b"n,,n=alice",
        b"n,,n=,r=abc",
        b"n,,n=alice,r=",
        b"n,,n=ali=2Dce,r=abc",
        b"n,,m=x,n=alice,r=abc",
        b"p=tls-unique,,n=alice,r=abc",
        b"n,a=bob,n=alice,r=abc",
        b"n,,n=alice,r=a\0b",
        b"n,,n=" + b"a" * 5000 + b",r=abc",
    ],
)
def test_a_first_message_that_is_none_is_refused(message: bytes) -> None:
    """With the code and the words of a wrong password, and the cause for the log."""
    error = _refusal(server(alice="y"), message)
    assert error.cause
    assert error.code is ErrorCode.SASL_AUTHENTICATION_FAILED


def test_a_replayed_exchange_is_refused() -> None:
    """A nonce is of one exchange; the same bytes are worth nothing later."""
    one, other = server(alice="y"), client("alice", "y")
    final = other.step(one.step(other.first))
    one.step(final)
    later = ScramServer(SHA_256, lambda _user, _token: PENCIL, b"m" * 24, b"secret")
    assert "nonce" in _refusal(later, other.first, final).cause
    with pytest.raises(AuthenticationFailed):
        one.step(final)


@given(st.binary(max_size=200), st.binary(max_size=200))
def test_no_bytes_do_more_than_fail(first: bytes, second: bytes) -> None:
    """Whatever comes, the exchange fails by its own error."""
    one = server()
    for message in (first, second):
        with suppress(AuthenticationFailed):
            one.step(message)
    assert one.user is None


@pytest.mark.parametrize(
    "answer",
    [
        b"r=other,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096",
        b"r=clientnonce,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096",
        b"r=clientnonceX,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=1",
        b"r=clientnonceX,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=999999999",
        b"r=clientnonceX,s=*,i=4096",
        b"e=other-error",
        b"",
    ],
)
def test_a_client_does_not_follow_a_server_that_cheats(answer: bytes) -> None:
    """Few iterations would give the password away, many keep the client busy."""
    with pytest.raises(AuthenticationFailed):
        client("alice", "y").step(answer)


def test_a_server_without_the_credential_is_found_out() -> None:
    """It cannot sign what was said."""
    one, other = server(alice="y"), client("alice", "y")
    other.step(one.step(other.first))
    with pytest.raises(AuthenticationFailed, match="invalid credentials") as error:
        other.step(b"v=" + base64.b64encode(b"x" * 32))
    assert "does not know" in error.value.cause


def test_a_delegation_token_is_looked_up_as_one() -> None:
    """The extension `tokenauth` says so (KIP-48)."""
    asked = []

    def find(user: str, is_token: bool) -> ScramCredential:
        asked.append((user, is_token))
        return PENCIL

    one = ScramServer(SHA_256, find, NONCE, b"secret")
    log_in(one, ScramClient(SHA_256, "id", "pencil", "abc", {"tokenauth": "true"}))
    assert (asked, one.is_token) == ([("id", True)], True)


@pytest.mark.parametrize("user", ["alice", "mallory"])
def test_known_and_unknown_users_cost_the_same_hashes(
    user: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the time of an answer would show which users exist."""
    known = server(alice="pencil")
    other = client(user, "wrong")
    hashes = []
    digest = hmac.digest
    monkeypatch.setattr(hmac, "digest", lambda *args: hashes.append(1) or digest(*args))
    final = ScramServer.step(known, other.first)
    assert len(hashes) == 4
    with pytest.raises(AuthenticationFailed):
        known.step(other.step(final))


@pytest.mark.parametrize(
    ("extensions", "iterations", "salt_bytes"), [({"tokenauth": "TRUE"}, 4096, 16), ({}, 8192, 32)]
)
def test_unknown_names_are_shown_what_known_ones_have(
    extensions: dict[str, str], iterations: int, salt_bytes: int
) -> None:
    """Iterations and size of the salt are those of tokens, or of users; a name keeps its salt."""
    salts = []
    for name, secret in (("id", b"secret"), ("id", b"secret"), ("other", b"secret"), ("id", b"x")):
        unknown = ScramServer(SHA_256, lambda _user, _token: None, NONCE, secret)
        first = ScramClient(SHA_256, name, "x", "abc", extensions).first
        nonce, salt, shown = unknown.step(first).decode().split(",")
        assert (nonce, shown) == (f"r=abc{OWN}", f"i={iterations}")
        salts.append(salt)
        assert len(base64.b64decode(salt.removeprefix("s="))) == salt_bytes
    assert salts[0] == salts[1]
    assert len(set(salts)) == 3


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (b"n,,n=id,r=abc,tokenauth=true", "id"),
        (b"n,,n=id,r=abc,tokenauth=True", "id"),
        (b"n,,n=id,r=abc,tokenauth=false", None),
        (b"n,,n=id,r=abc", None),
        (b"c=biws,r=abc,p=xx", None),
        (b"\xff", None),
    ],
)
def test_a_first_message_says_whether_it_is_of_a_token(
    message: bytes, expected: str | None
) -> None:
    """A malformed one is judged later."""
    assert token_in(message) == expected
