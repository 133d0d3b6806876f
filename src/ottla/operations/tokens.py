"""The settings with which a client logs in by a delegation token."""

from collections.abc import Mapping

from ottla.base.settings.properties import properties_text
from ottla.client.admin.tokens import TokenDescription

_LOGIN = ("sasl.username", "sasl.password", "sasl.mechanisms")
_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"


def settings_with_token(config: Mapping[str, str], found: TokenDescription) -> str:
    """The text of a `client.properties`: `config` with the token as its login. It is a secret."""
    kept = {name: value for name, value in config.items() if name not in _LOGIN}
    protocol = config.get("security.protocol", "SASL_PLAINTEXT").upper()
    mechanism = config.get("sasl.mechanism", config.get("sasl.mechanisms", ""))
    return properties_text(
        {
            **kept,
            "security.protocol": protocol if protocol.startswith("SASL") else f"SASL_{protocol}",
            "sasl.mechanism": mechanism if mechanism.startswith("SCRAM-") else "SCRAM-SHA-256",
            "sasl.jaas.config": f'{_MODULE} required username="{found.token.id}"'
            f' password="{found.password}" tokenauth="true";',
        }
    )
