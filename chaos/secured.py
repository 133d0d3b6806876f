"""What a run with security on adds: certificates, users, ACLs, and the clients' settings.

Clients and brokers have a listener each, both SASL_SSL; brokers show certificates to each other and
log in by SCRAM. The first users are written to the store before any broker starts, as
`kafka-storage.sh --add-scram` does for Kafka.
"""

import asyncio
import contextlib
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from ottla.base.settings import BrokerSettings
from ottla.broker.process.store_access import store_access
from ottla.client.connection.security import ClientSecurity, read_config, security_of
from ottla.coordination.connect import connect
from ottla.coordination.interface.store import Create, NodeExists
from ottla.metadata.nodes import encode_configs
from ottla.metadata.quota_entity import CONFIG_USERS
from ottla.operations.certificates import Issued, issue, new_authority
from ottla.security.sasl.scram_keys import (
    ScramMechanism,
    credential_of,
    credential_text,
    salted_password,
)
from rig.nodes import properties

MECHANISM = ScramMechanism.SCRAM_SHA_256
ADMIN, CLIENT_USER, VISITOR = "admin", "client", "visitor"
# Two users for brokers, so that their password can be changed without an outage.
BROKER_USERS = ("broker-a", "broker-b")
BROKERS_PORT = 9094
_ITERATIONS = 4096
_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"


@dataclass(slots=True)
class Secured:
    """Files and passwords of one run."""

    folder: Path
    authority: Issued
    passwords: dict[str, str]
    # The user by which brokers log in to each other.
    broker_user: str = BROKER_USERS[0]

    @property
    def ca(self) -> Path:
        return self.folder / "ca.pem"

    def properties_of(self, user: str) -> Path:
        """The client settings of a user, for Ottla, Java and (by its own names) librdkafka."""
        return self.folder / f"{user}.properties"

    def environment(self, user: str) -> dict[str, str]:
        """What a client's process is started with: no secret is on a command line."""
        return {"OTTLA_CONFIG": str(self.properties_of(user))}

    def security(self, user: str) -> ClientSecurity:
        """The same for a client in this process."""
        return security_of(read_config(str(self.properties_of(user))))

    def certify(self, number: int, address: str) -> None:
        """Give a broker a new certificate, in place of the one that it may use right now."""
        made = issue(self.authority, f"broker-{number}", datetime.now(UTC), hosts=[address])
        new = self.folder / f"broker-{number}.new"
        new.write_bytes(made.pem)
        new.rename(self.folder / f"broker-{number}.pem")

    def broker_settings(self, number: int, address: str, port: int) -> dict[str, str]:
        """The settings of a broker, by the user that brokers have now."""
        user = self.broker_user
        login = f'{_MODULE} required username="{user}" password="{self.passwords[user]}";'
        return {
            "listeners": f"CLIENTS://{address}:{port},BROKERS://{address}:{BROKERS_PORT}",
            "listener.security.protocol.map": "CLIENTS:SASL_SSL,BROKERS:SASL_SSL",
            "inter.broker.listener.name": "BROKERS",
            "sasl.enabled.mechanisms": MECHANISM.sasl_name,
            "sasl.mechanism.inter.broker.protocol": MECHANISM.sasl_name,
            f"listener.name.brokers.{MECHANISM.sasl_name.lower()}.sasl.jaas.config": login,
            "listener.name.brokers.ssl.client.auth": "required",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self.folder / f"broker-{number}.pem"),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.ca),
            "authorizer.class.name": ("org.apache.kafka.metadata.authorizer.StandardAuthorizer"),
            "super.users": f"User:{ADMIN}",
        }

    def write_users(self, settings: Mapping[str, str]) -> None:
        """Put the users into the store that brokers with these settings have."""
        asyncio.run(self._write_users(BrokerSettings(settings)))

    async def _write_users(self, settings: BrokerSettings) -> None:
        address = settings.text("coordination.connect")
        store = await connect(address, access=store_access(settings))
        try:
            await store.ensure(CONFIG_USERS)
            for user, password in self.passwords.items():
                salt = secrets.token_bytes(16)
                salted = salted_password(MECHANISM, password, salt, _ITERATIONS)
                text = credential_text(credential_of(MECHANISM, salted, salt, _ITERATIONS))
                data = encode_configs({MECHANISM.sasl_name: text})
                with contextlib.suppress(NodeExists):
                    await store.multi([Create(f"{CONFIG_USERS}/{user}", data)])
        finally:
            await store.close()


def secured(folder: Path) -> Secured:
    """New certificates, passwords and settings of clients in a folder that is not there yet."""
    folder.mkdir(mode=0o700, parents=True)
    users = (ADMIN, CLIENT_USER, VISITOR, *BROKER_USERS)
    made = Secured(
        folder,
        new_authority("chaos", datetime.now(UTC)),
        {user: secrets.token_urlsafe(12) for user in users},
    )
    (folder / "ca.pem").write_bytes(made.authority.pem.split(b"-----END PRIVATE KEY-----\n")[-1])
    for user in (ADMIN, CLIENT_USER, VISITOR):
        password = made.passwords[user]
        text = properties(
            {
                "security.protocol": "SASL_SSL",
                "sasl.mechanism": MECHANISM.sasl_name,
                "sasl.username": user,
                "sasl.password": password,
                "sasl.jaas.config": (
                    f'{_MODULE} required username="{user}" password="{password}";'
                ),
                "ssl.truststore.type": "PEM",
                "ssl.truststore.location": str(made.ca),
            }
        )
        made.properties_of(user).write_text(text)
    return made
