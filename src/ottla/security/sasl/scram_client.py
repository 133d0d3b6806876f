"""The client's side of SCRAM."""

import hmac
from collections.abc import Mapping

from ottla.security.sasl import scram_messages
from ottla.security.sasl.failures import MalformedExchange
from ottla.security.sasl.scram_keys import (
    ITERATIONS_MIN,
    ScramMechanism,
    client_proof,
    credential_of,
    mac,
    salted_password,
)

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
