"""SCRAM-SHA-256 and -512 against the credentials in the store."""

from ottla.base.chance import random_bytes
from ottla.broker.login.exchange import Stepped
from ottla.broker.login.users import ScramUsers
from ottla.security.sasl.failing import AuthenticationFailed
from ottla.security.sasl.scram_keys import ScramCredential, ScramMechanism
from ottla.security.sasl.scram_server import NONCE_BYTES, ScramServer


class ScramExchange:
    """Implements `ServerExchange`."""

    def __init__(self, mechanism: ScramMechanism, users: ScramUsers) -> None:
        self._mechanism = mechanism
        self._users = users
        self._server = ScramServer(
            mechanism, self._find, random_bytes(NONCE_BYTES), users.disguise(mechanism)
        )

    async def step(self, token: bytes) -> Stepped:
        """See `ServerExchange`."""
        answer = self._server.step(token)
        return Stepped(answer, self._server.user)

    def _find(self, user: str, is_token: bool) -> ScramCredential | None:
        if is_token:
            raise AuthenticationFailed(
                self._mechanism.sasl_name, "it asks for a delegation token, and there are none"
            )
        return self._users.find(self._mechanism, user)
