"""Two brokers with the same settings and users, one of them Kafka's, and clients that log in."""

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from rig.broker import ottla
from rig.kafka import kafka
from rig.probe import free_port
from rig.wire_client import WireClient

from ottla.security.sasl.client import ScramClient
from ottla.security.sasl.plain import write_plain
from ottla.security.sasl.scram_keys import ScramMechanism
from ottla.wire.messages.sasl import SaslAuthenticateRequest, SaslHandshakeRequest

USERS = ("alice", "bob", "carol")
_PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
_SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
_LISTED = " ".join(f'user_{user}="{user}-secret"' for user in USERS)
SETTINGS = {
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
    "sasl.plain.without.tls.enable": "true",
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": f"{_PLAIN} required {_LISTED};",
    "listener.name.sasl_plaintext.scram-sha-256.sasl.jaas.config": f"{_SCRAM} required;",
    "listener.name.sasl_plaintext.scram-sha-512.sasl.jaas.config": f"{_SCRAM} required;",
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
    "delegation.token.secret.key": "the same key",
    # Else many failures are answered late.
    "connection.failed.authentication.delay.ms": "0",
}
_PATIENCE_S = 120.0
_PAUSE_S = 0.02


class Ports(NamedTuple):
    """A broker: its listener in the clear, where every client may do everything, and with SASL."""

    plain: int
    sasl: int

    def user(self, name: str) -> WireClient:
        """A client that has logged in by PLAIN."""
        client = WireClient(self.sasl)
        assert client.call(SaslHandshakeRequest(mechanism="PLAIN"), 1).error_code == 0
        answer = client.call(
            SaslAuthenticateRequest(auth_bytes=write_plain(name, f"{name}-secret")), 2
        )
        assert answer.error_code == 0, answer
        return client

    def admin(self) -> WireClient:
        """A client that may do everything."""
        return WireClient(self.plain)


@contextlib.contextmanager
def own_ports(**changes: str) -> Iterator[Ports]:
    """Ottla."""
    ports = Ports(free_port(), free_port())
    listeners = f"PLAINTEXT://127.0.0.1:{ports.plain},SASL_PLAINTEXT://127.0.0.1:{ports.sasl}"
    settings = {**SETTINGS, "listeners": listeners, **changes}
    with ottla(settings=settings, port=ports.plain):
        yield ports


@contextlib.contextmanager
def kafka_ports(**changes: str) -> Iterator[Ports]:
    """Apache Kafka."""
    ports, controller = Ports(free_port(), free_port()), free_port()
    listeners = f"PLAINTEXT://127.0.0.1:{ports.plain},SASL_PLAINTEXT://127.0.0.1:{ports.sasl}"
    names = ("PLAINTEXT", "SASL_PLAINTEXT", "CONTROLLER")
    settings = {
        **SETTINGS,
        "listeners": f"{listeners},CONTROLLER://127.0.0.1:{controller}",
        "advertised.listeners": listeners,
        "controller.quorum.voters": f"1@127.0.0.1:{controller}",
        "listener.security.protocol.map": ",".join(
            f"{name}:{'PLAINTEXT' if name == 'CONTROLLER' else name}" for name in names
        ),
        **changes,
    }
    with kafka(settings=settings, port=ports.plain, quick=True):
        yield ports


def scram_login(
    port: int, mechanism: ScramMechanism, user: str, password: str, *, is_token: bool
) -> tuple[WireClient, Any]:
    """A client, and the last answer to its login."""
    client = WireClient(port)
    asked = SaslHandshakeRequest(mechanism=mechanism.sasl_name)
    assert client.call(asked, 1).error_code == 0
    extensions = {"tokenauth": "true"} if is_token else {}
    scram = ScramClient(mechanism, user, password, "a-nonce", extensions)
    answer = client.call(SaslAuthenticateRequest(auth_bytes=scram.first), 2)
    if not answer.error_code:
        final = scram.step(bytes(answer.auth_bytes))
        answer = client.call(SaslAuthenticateRequest(auth_bytes=final), 2)
    return client, answer


def until(ask: Callable[[], Any], is_right: Callable[[Any], bool]) -> Any:
    """The answer that is right: what a controller has decided, brokers learn a little later."""
    deadline = time.monotonic() + _PATIENCE_S
    while not is_right(answer := ask()):
        assert time.monotonic() < deadline, answer
        time.sleep(_PAUSE_S)
    return answer
