"""The login of a client of a secured cluster, as settings of each client library; passwords."""

import ssl
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from ottla.base.chance import random_bytes
from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.private_files import write_private
from ottla.base.settings import properties_text

MECHANISM: Final = "SCRAM-SHA-512"
PROTOCOL: Final = "SASL_SSL"
MODULE: Final = "org.apache.kafka.common.security.scram.ScramLoginModule"


def jaas(user: str, password: str) -> str:
    """Return `sasl.jaas.config` of a user; the texts must have no quotes or backslashes."""
    return f'{MODULE} required username="{user}" password="{password}";'


@dataclass(frozen=True, slots=True)
class ClientLogin:
    """A user, and the authority that signs the brokers' certificates.

    `authority` is the path of a PEM file, or the PEM itself. The repr has no password.
    """

    user: str
    password: str = field(repr=False)
    authority: str = field(repr=False)

    @property
    def _is_pem(self) -> bool:
        return self.authority.startswith("-----BEGIN")

    def for_java(self) -> dict[str, str]:
        """Return the settings for Kafka's own clients and tools, and for Ottla's."""
        where = "certificates" if self._is_pem else "location"
        return {
            "security.protocol": PROTOCOL,
            "sasl.mechanism": MECHANISM,
            "sasl.jaas.config": jaas(self.user, self.password),
            "ssl.truststore.type": "PEM",
            f"ssl.truststore.{where}": self.authority,
        }

    def for_librdkafka(self) -> dict[str, str]:
        """Return the settings for clients on librdkafka: confluent-kafka, kcat and others."""
        where = "pem" if self._is_pem else "location"
        return {
            "security.protocol": PROTOCOL,
            "sasl.mechanism": MECHANISM,
            "sasl.username": self.user,
            "sasl.password": self.password,
            f"ssl.ca.{where}": self.authority,
        }

    def for_kafka_python(self) -> dict[str, Any]:
        """Return the keyword arguments for kafka-python and aiokafka."""
        context = ssl.create_default_context(
            cafile=None if self._is_pem else self.authority,
            cadata=self.authority if self._is_pem else None,
        )
        return {
            "security_protocol": PROTOCOL,
            "sasl_mechanism": MECHANISM,
            "sasl_plain_username": self.user,
            "sasl_plain_password": self.password,
            "ssl_context": context,
        }


_BYTES: Final = 24


def new_password() -> str:
    """Return a random password of characters that need no quoting in files or shells."""
    return urlsafe_b64encode(random_bytes(_BYTES)).decode()


def kept_password(path: Path) -> str:
    """Return the password in a file; write a new one if missing. Raises OttlaError, OSError."""
    if not path.exists():
        # Synced to disk before it is used: without the password the user could not log in.
        write_private(path, f"{new_password()}\n".encode(), durably=True)
    password = path.read_text(encoding="utf-8-sig", errors="replace").strip()
    if not password or any(character in password for character in '"\\\n\ufffd'):
        raise OttlaError(
            ErrorCode.INVALID_CONFIG,
            f"{path} holds no password: one line without quotes and backslashes; remove the file"
            " for a new one",
        )
    return password


_LOGIN = ("sasl.username", "sasl.password", "sasl.mechanisms")


def settings_with_token(config: Mapping[str, str], token_id: str, password: str) -> str:
    """Return the text of a `client.properties`: `config` with a token as its login. A secret."""
    kept = {name: value for name, value in config.items() if name not in _LOGIN}
    protocol = config.get("security.protocol", "SASL_PLAINTEXT").upper()
    mechanism = config.get("sasl.mechanism", config.get("sasl.mechanisms", ""))
    return properties_text(
        {
            **kept,
            "security.protocol": protocol if protocol.startswith("SASL") else f"SASL_{protocol}",
            "sasl.mechanism": mechanism if mechanism.startswith("SCRAM-") else "SCRAM-SHA-256",
            "sasl.jaas.config": f'{MODULE} required username="{token_id}"'
            f' password="{password}" tokenauth="true";',
        }
    )
