"""Which tokens are accepted, and how the others are refused, beside a running Kafka."""

import base64
import json
import time
from collections.abc import Mapping
from pathlib import Path

import pytest
from joserfc import jws
from joserfc.jwk import OctKey
from rig.broker import ottla
from rig.issuer import AUDIENCE, Issuer, new_key, serving, signed
from rig.kafka import available, kafka
from rig.probe import free_port
from rig.wire_client import WireClient

from ottla.security.sasl.bearer import CLIENT_GIVES_UP, write_bearer
from ottla.wire.messages.metadata import MetadataRequest
from ottla.wire.messages.sasl import SaslAuthenticateRequest, SaslHandshakeRequest
from tests.integration.protocol.security.pair import until

PACKAGE = "org.apache.kafka.common.security.oauthbearer."
ALLOWED = "-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls="
SESSION = "a session that ends"
INVALID = """b'{"status":"invalid_token"}', 58: {"status":"invalid_token"}"""
SHARED = OctKey.import_key(
    {"kty": "oct", "k": base64.urlsafe_b64encode(b"s" * 33).decode(), "kid": "shared"}
)
# Where Kafka answers otherwise; `docs/reference/differences.md` says why.
DIFFERENT = {"signed by a shared secret", "too long", "another scheme"}


def messages(issuer: Issuer) -> dict[str, bytes]:
    """First messages of logins, by what they are."""
    now_s = int(time.time())
    claims = issuer.claims("alice", now_s)
    good = issuer.token("alice", now_s)
    head, body, signature = good.split(".")
    admin = _encoded(json.dumps({**claims, "sub": "admin"}).encode())
    own = new_key("key-1", "RS256")
    hour = {"iat": now_s - 3600, "nbf": now_s - 3600}
    claimed: dict[str, dict[str, object]] = {
        "expired": {**hour, "exp": now_s - 40},
        "expired, within the skew": {**hour, "exp": now_s - 10},
        "not yet valid": {"nbf": now_s + 120},
        "not yet valid, within the skew": {"nbf": now_s + 15},
        "for others": {"aud": "billing"},
        "for others and this one": {"aud": ["billing", AUDIENCE]},
        "for none": {"aud": None},
        "of another issuer": {"iss": "https://other.example"},
        "of no issuer": {"iss": None},
        "without exp": {"exp": None},
        "without iat": {"iat": None},
        "without sub": {"sub": None},
        "with an empty sub": {"sub": " "},
        "with a number as sub": {"sub": 7},
        "with scopes": {"scope": ["a", "b"]},
        "with a number as scope": {"scope": 7},
        "with a scope twice": {"scope": ["a", "a"]},
        "with a text as exp": {"exp": str(now_s + 600)},
        "issued in the future": {"iat": now_s + 300},
        "issued after its end": {"iat": now_s + 300, "exp": now_s + 200},
        "too long": {"more": "x" * 13_000},
    }
    tokens = {
        "good": good,
        **{what: issuer.token("alice", now_s, **change) for what, change in claimed.items()},
        "unsigned": ".".join((_encoded(b'{"alg":"none"}'), body, "")),
        "signed otherwise": signed(claims, issuer.keys[0], "PS256"),
        "without kid": signed(claims, issuer.keys[0], "RS256", kid=None),
        "with an unknown kid": signed(claims, issuer.keys[0], "RS256", kid="unknown"),
        "with its own key": signed(claims, own, "RS256", jwk=own.as_dict(private=False)),
        "signed by a shared secret": signed(claims, SHARED, "HS256"),
        "altered": f"{head}.{admin}.{signature}",
        "no token": "abc",
        "with a claim twice": _signed_text(issuer, json.dumps(claims)[:-1] + ',"sub":"bob"}'),
        "with a name in a claim twice": _signed_text(
            issuer, json.dumps(claims)[:-1] + ',"more":{"a":1,"a":1}}'
        ),
        "in UTF-16": _signed_text(issuer, json.dumps(claims), "utf-16"),
    }
    return {
        **{what: write_bearer(token) for what, token in tokens.items()},
        "acts as itself": write_bearer(good).replace(b"n,,", b"n,a=alice,"),
        "acts as another": write_bearer(good).replace(b"n,,", b"n,a=bob,"),
        "blanks": write_bearer(good).replace(b"Bearer ", b"bearer  "),
        "another scheme": write_bearer(good).replace(b"Bearer", b"Basic"),
        "malformed": b"n,,\x01",
        "empty": b"",
    }


def _signed_text(issuer: Issuer, text: str, encoding: str = "utf-8") -> str:
    header = {"alg": "RS256", "kid": "key-1"}
    return jws.serialize_compact(header, text.encode(encoding), issuer.keys[0])


def _encoded(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


def answer(port: int, message: bytes) -> str:
    """What the broker answers, and then to a client that gives up."""
    with WireClient(port) as client:
        try:
            assert client.call(SaslHandshakeRequest(mechanism="OAUTHBEARER"), 1).error_code == 0
            first = client.call(SaslAuthenticateRequest(auth_bytes=message), 2)
            if first.error_code:
                return f"{first.error_code}: {first.error_message}"
            if not first.auth_bytes:
                return f"a session{' that ends' if first.session_lifetime_ms else ''}"
            last = client.call(SaslAuthenticateRequest(auth_bytes=CLIENT_GIVES_UP), 2)
        except ConnectionError:
            return "closed"
        return f"{bytes(first.auth_bytes)!r}, {last.error_code}: {last.error_message}"


def answers(port: int, issuer: Issuer) -> Mapping[str, str]:
    return {what: answer(port, message) for what, message in messages(issuer).items()}


def kafkas_own(unsigned: int, moved: int, issuer: Issuer) -> list[str]:
    """What Kafka does and Ottla does not: rows of `docs/reference/differences.md`."""
    now_s = int(time.time())
    claims = json.dumps(issuer.claims("alice", now_s)).encode()
    token = ".".join((_encoded(b'{"alg":"none"}'), _encoded(claims), ""))
    found = [
        answer(unsigned, write_bearer(token)),
        answer(moved, write_bearer(issuer.token("alice", now_s))),
    ]
    issuer.rotate()
    new = write_bearer(issuer.token("alice", now_s))
    found.append(answer(moved, new))
    until(lambda: answer(moved, new), lambda given: given == SESSION)
    with WireClient(moved) as client:
        assert client.call(SaslHandshakeRequest(mechanism="OAUTHBEARER"), 1).error_code == 0
        for message in (write_bearer(token), new):
            client.call(SaslAuthenticateRequest(auth_bytes=message), 2)
        found.append(str(client.call(MetadataRequest(topics=[]), 12).controller_id))
    return found


@pytest.mark.skipif(available() is not None, reason=str(available()))
def test_tokens_are_accepted_and_refused_as_by_kafka(tmp_path: Path) -> None:
    """With the same texts and codes, but for three kinds of messages.

    Kafka alone accepts unsigned tokens by default, follows `http:` and redirections, refuses the
    first token of a new key, and takes another token after a refused one.
    """
    issuer = Issuer(algorithm="RS256")
    keys = json.loads(issuer.jwks())["keys"]
    (tmp_path / "keys").write_text(json.dumps({"keys": [*keys, SHARED.as_dict(private=True)]}))
    url = f"file://{tmp_path / 'keys'}"
    port, controller, clients, unsigned, moved = (free_port() for _ in range(5))
    settings = {
        "listeners": f"PLAINTEXT://127.0.0.1:{port},SASL_PLAINTEXT://127.0.0.1:{clients}",
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        "sasl.oauthbearer.jwks.endpoint.url": url,
        "sasl.oauthbearer.expected.audience": AUDIENCE,
        "sasl.oauthbearer.expected.issuer": issuer.name,
        "connection.failed.authentication.delay.ms": "0",
    }
    listeners = f"{settings['listeners']},UNSIGNED://127.0.0.1:{unsigned},MOVED://127.0.0.1:{moved}"
    other = Issuer(algorithm="RS256")
    with serving(other, None):
        of_kafka = {
            **settings,
            "controller.quorum.voters": f"1@127.0.0.1:{controller}",
            "listeners": f"{listeners},CONTROLLER://127.0.0.1:{controller}",
            "advertised.listeners": listeners,
            "listener.security.protocol.map": (
                "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT,"
                "UNSIGNED:SASL_PLAINTEXT,MOVED:SASL_PLAINTEXT"
            ),
            **{
                f"listener.name.{name}.oauthbearer.sasl.jaas.config": (
                    f"{PACKAGE}OAuthBearerLoginModule required;"
                )
                for name in ("sasl_plaintext", "unsigned", "moved")
            },
            **{
                f"listener.name.{name}.oauthbearer.sasl.server.callback.handler.class": (
                    f"{PACKAGE}OAuthBearerValidatorCallbackHandler"
                )
                for name in ("sasl_plaintext", "moved")
            },
            "listener.name.moved.oauthbearer.sasl.oauthbearer.jwks.endpoint.url": other.moved_url,
        }
        allowed = [f"{ALLOWED}{url},{other.moved_url}"]
        with kafka(settings=of_kafka, port=port, quick=True, java_options=allowed):
            of_kafkas = answers(clients, issuer)
            assert kafkas_own(unsigned, moved, other) == [SESSION, SESSION, INVALID, "1"]
    with ottla(settings={**settings, "sasl.oauthbearer.allowed.urls": url}, port=port):
        of_ours = answers(clients, issuer)
    differ = {what for what, found in of_ours.items() if found != of_kafkas[what]}
    assert differ == DIFFERENT, [(w, of_kafkas[w], of_ours[w]) for w in differ ^ DIFFERENT]
    assert sum("session" in found for found in of_ours.values()) == 11
