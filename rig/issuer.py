"""An issuer of OAuth tokens: signs JWTs, publishes its keys, and answers its clients over HTTPS."""

import base64
import contextlib
import json
import ssl
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, Literal
from urllib.parse import parse_qs

from joserfc import jws
from joserfc.jwk import ECKey, Key, OKPKey, RSAKey

from rig.secret_search import register

AUDIENCE = "kafka-cluster"


def new_key(key_id: str | None, algorithm: str = "ES256") -> Key:
    """A private key for signatures by an algorithm."""
    parameters: Any = {} if key_id is None else {"kid": key_id}
    if algorithm.startswith("ES"):
        curves: dict[str, Literal["P-256", "P-384", "P-521"]]
        curves = {"ES256": "P-256", "ES384": "P-384", "ES512": "P-521"}
        return ECKey.generate_key(curves[algorithm], parameters)
    if algorithm.startswith("Ed"):
        return OKPKey.generate_key("Ed25519", parameters)
    return RSAKey.generate_key(2048, parameters)


def signed(claims: Mapping[str, object], key: Key, algorithm: str, **header: object) -> str:
    """A token; `kid` is the key's unless `header` has another, or None for none."""
    chosen = {"alg": algorithm, "typ": "JWT", "kid": key.kid, **header}
    said = {name: value for name, value in chosen.items() if value is not None}
    registry = jws.JWSRegistry(algorithms=[algorithm], strict_check_header=False)
    return jws.serialize_compact(said, json.dumps(claims), key, registry=registry)


@dataclass
class Issuer:
    """The newest key signs; all are published, unless `published` says otherwise."""

    name: str = "https://issuer.example"
    algorithm: str = "ES256"
    keys: list[Key] = field(default_factory=list)
    published: list[Key] | None = None
    # Passwords of clients, and for how long their tokens are valid.
    clients: dict[str, str] = field(default_factory=dict)
    lifetime_s: float = 600
    # While it is set, each request is answered with this status and no content.
    status: int = 200
    # Paths of the requests that were answered.
    requests: list[str] = field(default_factory=list)
    # Bodies of the requests for tokens.
    forms: list[dict[str, list[str]]] = field(default_factory=list)
    port: int = 0
    has_tls: bool = True

    def __post_init__(self) -> None:
        if not self.keys:
            self.rotate()

    @property
    def keys_url(self) -> str:
        """Where its public keys are."""
        return f"{self._base}/keys"

    @property
    def moved_url(self) -> str:
        """Sends clients on to `keys_url`."""
        return f"{self._base}/moved"

    @property
    def token_url(self) -> str:
        """Where clients get tokens."""
        return f"{self._base}/token"

    @property
    def _base(self) -> str:
        return f"{'https' if self.has_tls else 'http'}://localhost:{self.port}"

    def rotate(self, key_id: str | None = "") -> None:
        """Sign with a new key from now on."""
        name = f"key-{len(self.keys) + 1}" if key_id == "" else key_id
        self.keys.append(new_key(name, self.algorithm))

    def jwks(self) -> bytes:
        """The document of its public keys."""
        keys = self.keys if self.published is None else self.published
        return json.dumps({"keys": [key.as_dict(private=False) for key in keys]}).encode()

    def claims(self, subject: str, now_s: float | None = None, **other: object) -> dict[str, Any]:
        """Those of a token that is good now; a claim of None is left out."""
        now_s = time.time() if now_s is None else now_s
        chosen = {
            "sub": subject,
            "iss": self.name,
            "aud": AUDIENCE,
            "iat": int(now_s),
            "exp": int(now_s) + self.lifetime_s,
            **other,
        }
        return {name: value for name, value in chosen.items() if value is not None}

    def token(self, subject: str, now_s: float | None = None, **other: object) -> str:
        """A token of a subject, signed with the newest key."""
        token = signed(self.claims(subject, now_s, **other), self.keys[-1], self.algorithm)
        register(token, "a bearer token")
        return token


class _Handler(BaseHTTPRequestHandler):
    issuer: Issuer

    def do_GET(self) -> None:
        if self.path == "/moved":
            self._answer(b"", 302)
        else:
            self._answer(self.issuer.jwks() if self.path == "/keys" else None)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", "0"))).decode()
        issuer = self.issuer
        issuer.forms.append(parse_qs(body))
        scheme, _, encoded = self.headers.get("Authorization", "").partition(" ")
        user, _, password = base64.b64decode(encoded).decode().partition(":")
        if scheme != "Basic" or issuer.clients.get(user) != password:
            self._answer(b'{"error":"invalid_client"}', 401)
            return
        answer = {
            "access_token": issuer.token(user),
            "token_type": "Bearer",
            "expires_in": issuer.lifetime_s,
        }
        self._answer(json.dumps(answer).encode())

    def _answer(self, content: bytes | None, status: int = 200) -> None:
        issuer = self.issuer
        issuer.requests.append(self.path)
        if issuer.status != 200:
            content, status = b"", issuer.status
        elif content is None:
            content, status = b"", 404
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        if status in (301, 302):
            self.send_header("Location", "/keys")
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Requests are kept in `Issuer.requests`."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that breaks its connection off."""


@contextlib.contextmanager
def serving(issuer: Issuer, certificate: Path | None) -> Iterator[Issuer]:
    """Let an issuer answer over HTTPS with a PEM file of a key and its certificate.

    Without a file it answers in the clear, as only Kafka's brokers let themselves be answered.
    """
    handler = type("Handler", (_Handler,), {"issuer": issuer})
    server = _Server(("127.0.0.1", issuer.port), handler)
    if certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        server.socket = context.wrap_socket(
            server.socket, server_side=True, do_handshake_on_connect=False
        )
    issuer.port, issuer.has_tls = server.server_address[1], certificate is not None
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield issuer
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
