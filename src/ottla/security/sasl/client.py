"""The client's side of SASL."""

import base64
import hmac
from collections.abc import Callable, Generator, Mapping
from typing import Any, NamedTuple, Protocol

from ottla.base.errors import ErrorCode, OttlaError
from ottla.security.sasl import bearer, plain, scram_messages
from ottla.security.sasl.failures import AuthenticationFailed, MalformedExchange
from ottla.security.sasl.jaas import Jaas
from ottla.security.sasl.scram_keys import (
    ITERATIONS_MIN,
    ScramMechanism,
    client_proof,
    credential_of,
    mac,
    salted_password,
)
from ottla.wire.messages.sasl import SaslAuthenticateRequest, SaslHandshakeRequest
from ottla.wire.notation import Message

_HEADER = "n,,"
# A server that asks for more iterations would keep this client busy.
_ITERATIONS_MAX = 1_000_000


class ScramClient:
    """One exchange: send `first`, then the result of `step` for each answer, until it is empty."""

    def __init__(
        self,
        mechanism: ScramMechanism,
        user: str,
        password: str,
        nonce: str,
        extensions: Mapping[str, str],
    ) -> None:
        """Start an exchange. `nonce` must be unique, in printable characters without a comma."""
        self._mechanism = mechanism
        self._password = password
        self._nonce = nonce
        self.first = scram_messages.write_client_first(user, nonce, dict(extensions))
        self._expected: bytes | None = None

    def step(self, answer: bytes) -> bytes:
        """Return the next message; empty once the server has proven that it knows the credential.

        Raises MalformedExchange if the server violates the protocol, or does not know the user.
        """
        try:
            if self._expected is None:
                return self._prove(answer)
            signature = scram_messages.read_server_final(answer)
        except ValueError as error:
            raise self._malformed(str(error)) from None
        if not hmac.compare_digest(signature, self._expected):
            raise self._malformed("the server does not know this user's credential")
        return b""

    def _prove(self, answer: bytes) -> bytes:
        server = scram_messages.read_server_first(answer)
        if not server.nonce.startswith(self._nonce) or server.nonce == self._nonce:
            raise self._malformed("the server's nonce is not of this exchange")
        if not ITERATIONS_MIN <= server.iterations <= _ITERATIONS_MAX:
            raise self._malformed(
                f"the server wants {server.iterations} iterations, and {ITERATIONS_MIN} to "
                f"{_ITERATIONS_MAX} are safe"
            )
        salted = salted_password(self._mechanism, self._password, server.salt, server.iterations)
        final = scram_messages.client_final_without_proof(_HEADER, server.nonce)
        bare = self.first.removeprefix(_HEADER.encode())
        signed = b",".join((bare, answer, final.encode()))
        credential = credential_of(self._mechanism, salted, server.salt, server.iterations)
        self._expected = mac(self._mechanism, credential.server_key, signed)
        proof = client_proof(self._mechanism, salted, signed)
        return scram_messages.write_client_final(final, proof)

    def _malformed(self, cause: str) -> MalformedExchange:
        return MalformedExchange(self._mechanism.sasl_name, cause)


_NONCE_BYTES = 24
_SCRAM = {mechanism.sasl_name: mechanism for mechanism in ScramMechanism}
MECHANISMS = (*_SCRAM, plain.MECHANISM, bearer.MECHANISM)


class ClientExchange(Protocol):
    """One login: send `first`, then the result of `step` for each answer, until it is empty."""

    first: bytes

    def step(self, answer: bytes) -> bytes:
        """Return the next message. Raises MalformedExchange if the server cannot be trusted."""
        ...


class SaslIdentity(NamedTuple):
    """The user and mechanism of a login; `repr` leaves the password out."""

    mechanism: str
    user: str
    password: str  # For OAUTHBEARER the token, once the identity is `ready`.
    # Returns the token of OAUTHBEARER, and may block.
    token: Callable[[], str] | None = None
    # Whether user and password are the id and the HMAC of a delegation token.
    is_delegation_token: bool = False

    def __repr__(self) -> str:
        return f"SaslIdentity({self.mechanism!r}, {self.user!r})"

    def ready(self) -> "SaslIdentity":
        """Return the identity with a valid token.

        May block if `token` is set; raises OttlaError.
        """
        return self if self.token is None else self._replace(password=self.token())

    @property
    def name(self) -> str:
        """Return the user's name for messages."""
        return f"{'delegation token' if self.is_delegation_token else 'user'} {self.user!r}"

    def exchange(self, random_bytes: Callable[[int], bytes]) -> ClientExchange:
        """Start a new login exchange."""
        if self.mechanism == bearer.MECHANISM:
            return _Bearer(self)
        scram = _SCRAM.get(self.mechanism)
        if scram is None:
            return _Plain(self)
        nonce = base64.b64encode(random_bytes(_NONCE_BYTES)).decode()
        extensions = {"tokenauth": "true"} if self.is_delegation_token else {}
        return ScramClient(scram, self.user, self.password, nonce, extensions)


def identity_of(mechanism: str, jaas: Jaas) -> SaslIdentity:
    """Return the user and password of a login module. Raises OttlaError(INVALID_CONFIG)."""
    if mechanism not in MECHANISMS or mechanism == bearer.MECHANISM:
        raise OttlaError(
            ErrorCode.INVALID_CONFIG,
            f"there is no login by SASL mechanism {mechanism} here; choose one of "
            f"{', '.join(MECHANISMS)}",
        )
    family = "SCRAM" if mechanism in _SCRAM else mechanism
    user, password = jaas.options.get("username"), jaas.options.get("password")
    if jaas.mechanism != family or not user or not password:
        raise OttlaError(
            ErrorCode.INVALID_CONFIG,
            f"sasl.jaas.config has no username and password for {mechanism}: name its login "
            "module, with both options",
        )
    is_token = jaas.options.get("tokenauth", "").lower() == "true"
    return SaslIdentity(
        mechanism, user, password, is_delegation_token=is_token and family == "SCRAM"
    )


# Yields requests and receives their responses, whose types depend on the requests.
LoginRequests = Generator[Message, Any, int]


def login_requests(
    identity: SaslIdentity, server: str, random_bytes: Callable[[int], bytes]
) -> LoginRequests:
    """Yield the requests of a login and receive their responses; `server` is for messages.

    `identity` must be ready. Returns how many milliseconds the session lasts; 0: unlimited. Raises
    OttlaError if the server refuses, or does not prove that it knows the user.
    """
    shaken = yield SaslHandshakeRequest(mechanism=identity.mechanism)
    if shaken.error_code:
        raise OttlaError(
            ErrorCode(shaken.error_code),
            f"{server} does not log clients in by {identity.mechanism}: set the mechanism to one "
            f"of its own ({', '.join(shaken.mechanisms) or 'none: its listener has no SASL'})",
        )
    exchange = identity.exchange(random_bytes)
    token = exchange.first
    while True:
        answer = yield SaslAuthenticateRequest(auth_bytes=token)
        if answer.error_code:
            raise OttlaError(ErrorCode(answer.error_code), _refused(server, identity))
        try:
            token = exchange.step(bytes(answer.auth_bytes))
        except AuthenticationFailed as error:
            raise OttlaError(error.code, f"{server} is not to be trusted: {error.cause}") from None
        if not token:
            lifetime_ms: int = answer.session_lifetime_ms
            return lifetime_ms


def _refused(server: str, identity: SaslIdentity) -> str:
    if identity.mechanism == bearer.MECHANISM:
        return (
            f"{server} refused the token of this client: is it of the right issuer, for this "
            "cluster, and has it not expired? The broker's log says more"
        )
    return (
        f"{server} refused the login of {identity.name} by {identity.mechanism}: check user and "
        "password; the broker's log says more"
    )


class _Bearer:
    """The single message of OAUTHBEARER; a non-empty answer gives the reason for a refusal."""

    def __init__(self, identity: SaslIdentity) -> None:
        self.first = bearer.write_bearer(identity.password)
        self._is_refused = False

    def step(self, answer: bytes) -> bytes:
        if self._is_refused:
            raise MalformedExchange(bearer.MECHANISM, "the server goes on after its refusal")
        self._is_refused = bool(answer)
        return bearer.CLIENT_GIVES_UP if answer else b""


class _Plain:
    """The one message of PLAIN, which has an empty answer."""

    def __init__(self, identity: SaslIdentity) -> None:
        self.first = plain.write_plain(identity.user, identity.password)

    def step(self, answer: bytes) -> bytes:
        if answer:
            raise MalformedExchange(plain.MECHANISM, "the server answers more than nothing")
        return b""
