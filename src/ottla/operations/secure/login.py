"""What clients of a secured cluster need, in the words of each library. Pure."""

import ssl
from dataclasses import dataclass, field
from typing import Any, Final

MECHANISM: Final = "SCRAM-SHA-512"
PROTOCOL: Final = "SASL_SSL"
MODULE: Final = "org.apache.kafka.common.security.scram.ScramLoginModule"


def jaas(user: str, password: str) -> str:
    """`sasl.jaas.config` of a user; neither text has quotes or backslashes."""
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
        """For Kafka's own clients and tools, and for Ottla's."""
        where = "certificates" if self._is_pem else "location"
        return {
            "security.protocol": PROTOCOL,
            "sasl.mechanism": MECHANISM,
            "sasl.jaas.config": jaas(self.user, self.password),
            "ssl.truststore.type": "PEM",
            f"ssl.truststore.{where}": self.authority,
        }

    def for_librdkafka(self) -> dict[str, str]:
        """For clients on librdkafka: confluent-kafka, kcat and others."""
        where = "pem" if self._is_pem else "location"
        return {
            "security.protocol": PROTOCOL,
            "sasl.mechanism": MECHANISM,
            "sasl.username": self.user,
            "sasl.password": self.password,
            f"ssl.ca.{where}": self.authority,
        }

    def for_kafka_python(self) -> dict[str, Any]:
        """Keyword arguments of kafka-python and aiokafka."""
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
