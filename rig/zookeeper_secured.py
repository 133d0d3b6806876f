"""A ZooKeeper with logins by SASL and a port for TLS, beside the open one."""

import contextlib
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from ottla.operations.certificates import DevelopmentFiles, make_development_files
from rig.probe import free_port
from rig.zookeeper import Ensemble, zookeeper

USER, PASSWORD = "ottla", "zookeeper-secret"


@dataclass(frozen=True, slots=True)
class Secured:
    """One server; `files` has certificates that it trusts, and its own."""

    ensemble: Ensemble
    tls_port: int
    files: DevelopmentFiles

    @property
    def open_hosts(self) -> str:
        """The port without TLS, where clients may log in or not."""
        return self.ensemble.hosts

    @property
    def tls_hosts(self) -> str:
        return f"127.0.0.1:{self.tls_port}"


@contextlib.contextmanager
def secured_zookeeper() -> Iterator[Secured]:
    """Start it with empty data; certificates of clients are taken, and not demanded."""
    with tempfile.TemporaryDirectory(prefix="rig-zookeeper-") as home:
        files = make_development_files(Path(home) / "certs", [], USER, datetime.now(UTC))
        jaas = Path(home) / "jaas.conf"
        jaas.write_text(
            "Server { org.apache.zookeeper.server.auth.DigestLoginModule required"
            f' user_{USER}="{PASSWORD}"; }};'
        )
        port = free_port()
        settings = {
            "authProvider.1": "org.apache.zookeeper.server.auth.SASLAuthenticationProvider",
            "authProvider.2": "org.apache.zookeeper.server.auth.X509AuthenticationProvider",
            "serverCnxnFactory": "org.apache.zookeeper.server.NettyServerCnxnFactory",
            "secureClientPort": str(port),
            "secureClientPortAddress": "127.0.0.1",
            "ssl.keyStore.location": str(files.server),
            "ssl.trustStore.location": str(files.authority),
            "ssl.clientAuth": "want",
        }
        flag = f"-Djava.security.auth.login.config={jaas}"
        with zookeeper(1, settings=settings, flags=(flag,)) as ensemble:
            yield Secured(ensemble, port, files)
