"""A broker with TLS, logins and ACLs, for tests of clients: Ottla or Apache Kafka."""

import contextlib
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from ottla.client import sync
from ottla.operations.certificates import DevelopmentFiles, make_development_files
from ottla.security.acl import Acl, AclFilter, ResourcePattern
from ottla.security.names import AclOperation, AclResource, PatternType, Permission
from rig.broker import ottla
from rig.issuer import AUDIENCE, Issuer, serving
from rig.kafka import kafka
from rig.nodes import Node
from rig.probe import free_port

AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
_MODULES = "org.apache.kafka.common.security"
# Of PLAIN on Ottla these users are those with a SCRAM credential; Kafka takes them from here.
SCRAM, PLAIN, BEARER = "SCRAM-SHA-512", "PLAIN", "OAUTHBEARER"
# The Java system property of clients and of Kafka's brokers.
ALLOWED_URLS = "org.apache.kafka.sasl.oauthbearer.allowed.urls"
_BEARER_MODULES = f"{_MODULES}.oauthbearer.OAuthBearer"


def administration(node: Node) -> sync.Admin:
    """In the clear, whatever OTTLA_CONFIG says."""
    return sync.Admin(node.bootstrap, config={})


@dataclass
class Secured:
    """A broker with three ways in.

    In the clear ANONYMOUS administers it, by `sasl` (SASL_SSL) users log in, and by `mutual` (SSL)
    clients have the certificate of `User:CN=carol`. Passwords are those that no file may show.
    """

    node: Node
    files: DevelopmentFiles
    sasl: str
    mutual: str
    passwords: dict[str, str] = field(default_factory=dict)
    # Gives users tokens for their passwords.
    issuer: Issuer | None = None

    def jaas(self, user: str, mechanism: str = SCRAM) -> str:
        """The value of `sasl.jaas.config`."""
        if mechanism == BEARER:
            return (
                f'{_BEARER_MODULES}LoginModule required clientId="{user}" '
                f'clientSecret="{self.passwords[user]}" scope="kafka" '
                f'ssl.truststore.type="PEM" ssl.truststore.location="{self.files.authority}";'
            )
        name = "plain.PlainLoginModule" if mechanism == PLAIN else "scram.ScramLoginModule"
        secret = self.passwords[user]
        return f'{_MODULES}.{name} required username="{user}" password="{secret}";'

    def settings(self, user: str, mechanism: str = SCRAM) -> dict[str, str]:
        """A user's settings in the words of Kafka's clients."""
        settings = {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": mechanism,
            "sasl.jaas.config": self.jaas(user, mechanism),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.files.authority),
        }
        if mechanism == BEARER:
            assert self.issuer is not None
            settings["sasl.oauthbearer.token.endpoint.url"] = self.issuer.token_url
            settings["sasl.login.callback.handler.class"] = f"{_BEARER_MODULES}LoginCallbackHandler"
        return settings

    def certificate_settings(self) -> dict[str, str]:
        """Those of carol, whom her certificate names."""
        return {
            "security.protocol": "SSL",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.files.authority),
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self.files.client),
        }

    def write_config(self, path: Path, user: str, mechanism: str = SCRAM) -> Path:
        """A file of these settings."""
        settings = self.settings(user, mechanism)
        path.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        return path

    def create_topic(self, name: str, partitions: int = 1) -> None:
        """A topic that no user may see yet."""
        with administration(self.node) as admin:
            admin.topics.create(name, partitions=partitions)

    def allow(self, user: str, operation: str, resource: str, *, prefixed: bool = False) -> None:
        """Add the ACL `ottla acl add User:USER OPERATION RESOURCE`."""
        with administration(self.node) as admin:
            admin.acls.create([_acl(user, operation, resource, prefixed)])

    def withdraw(self, user: str, operation: str, resource: str, *, prefixed: bool = False) -> None:
        """Remove it again."""
        with administration(self.node) as admin:
            one = _acl(user, operation, resource, prefixed)
            pattern = one.pattern
            admin.acls.delete(
                AclFilter(
                    pattern.resource_type,
                    pattern.name,
                    pattern.pattern_type,
                    one.principal,
                    one.host,
                    one.operation,
                    one.permission,
                )
            )


def _acl(user: str, operation: str, resource: str, prefixed: bool) -> Acl:
    kind, _, name = resource.partition(":")
    pattern = ResourcePattern(
        AclResource[kind.upper().replace("-", "_")],
        name or "kafka-cluster",
        PatternType.PREFIXED if prefixed else PatternType.LITERAL,
    )
    wanted = AclOperation[operation.upper().replace("-", "_")]
    return Acl(pattern, f"User:{user}", "*", wanted, Permission.ALLOW)


@contextlib.contextmanager
def secured(
    passwords: dict[str, str],
    *,
    on_kafka: bool = False,
    settings: dict[str, str] | None = None,
    issuer: Issuer | None = None,
) -> Iterator[Secured]:
    """A broker that knows the users; none may do anything yet.

    With an `issuer` they log in by its tokens, too, which it gives them for their passwords.
    """
    with tempfile.TemporaryDirectory(prefix="rig-certs-") as folder:
        files = make_development_files(Path(folder), [], "carol", datetime.now(UTC))
        port, sasl, mutual, controller = (free_port() for _ in range(4))
        if issuer is not None:
            issuer.clients.update(passwords)
        users = " ".join(f'user_{name}="{secret}"' for name, secret in passwords.items())
        chosen = {
            "listeners": f"PLAINTEXT://127.0.0.1:{port},SASL_SSL://localhost:{sasl},"
            f"SSL://localhost:{mutual}",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(files.server),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(files.authority),
            "listener.name.ssl.ssl.client.auth": "required",
            "authorizer.class.name": AUTHORIZER,
            "super.users": "User:ANONYMOUS",
            "sasl.enabled.mechanisms": f"{SCRAM},{PLAIN}",
            "listener.name.sasl_ssl.plain.sasl.jaas.config": (
                f"{_MODULES}.plain.PlainLoginModule required {users};"
            ),
            "transaction.state.log.num.partitions": "5",
            **({} if issuer is None else _bearer_settings(issuer, Path(folder) / "keys.json")),
            **(settings or {}),
        }
        start: Callable[[], AbstractContextManager[Node]] = lambda: ottla(  # noqa: E731
            settings=chosen, port=port
        )
        if on_kafka:
            chosen["advertised.listeners"] = chosen["listeners"]
            chosen["listeners"] += f",CONTROLLER://127.0.0.1:{controller}"
            chosen["controller.quorum.voters"] = f"1@127.0.0.1:{controller}"
            chosen["listener.security.protocol.map"] = (
                "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL_SSL:SASL_SSL,SSL:SSL"
            )
            chosen["listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config"] = (
                f"{_MODULES}.scram.ScramLoginModule required;"
            )
            allowed = f"-D{ALLOWED_URLS}={chosen.get('sasl.oauthbearer.jwks.endpoint.url', '')}"
            chosen.pop("sasl.oauthbearer.allowed.urls", None)
            start = lambda: kafka(  # noqa: E731
                settings=chosen, port=port, quick=True, java_options=[allowed]
            )
        issues = contextlib.nullcontext() if issuer is None else serving(issuer, files.server)
        with issues, start() as node:
            with administration(node) as admin:
                for name, secret in passwords.items():
                    admin.users.set_password(name, secret)
            sasl_address, mutual_address = f"localhost:{sasl}", f"localhost:{mutual}"
            yield Secured(node, files, sasl_address, mutual_address, dict(passwords), issuer)


def _bearer_settings(issuer: Issuer, keys: Path) -> dict[str, str]:
    keys.write_bytes(issuer.jwks())
    url = keys.as_uri()
    return {
        "sasl.enabled.mechanisms": f"{SCRAM},{PLAIN},{BEARER}",
        "sasl.oauthbearer.jwks.endpoint.url": url,
        "sasl.oauthbearer.allowed.urls": url,
        "sasl.oauthbearer.expected.audience": AUDIENCE,
        "sasl.oauthbearer.expected.issuer": issuer.name,
        "listener.name.sasl_ssl.oauthbearer.sasl.jaas.config": (
            f"{_BEARER_MODULES}LoginModule required;"
        ),
        "listener.name.sasl_ssl.oauthbearer.sasl.server.callback.handler.class": (
            f"{_BEARER_MODULES}ValidatorCallbackHandler"
        ),
    }
