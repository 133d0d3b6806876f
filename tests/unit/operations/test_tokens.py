"""The settings of a client that logs in with a delegation token."""

import pytest

from ottla.base.settings.properties import parse_properties
from ottla.client.admin.credentials import TokenDescription
from ottla.operations.secure.login import settings_with_token
from ottla.security.principal import Principal
from ottla.security.sasl.client import identity_of
from ottla.security.sasl.jaas import parse_jaas
from ottla.security.tokens import DelegationToken

ALICE = Principal("User", "alice")
TOKEN = TokenDescription(DelegationToken("an-id", ALICE, ALICE, (), 0, 2, 1), b"\xff" * 64)


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({}, {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "SCRAM-SHA-256"}),
        (
            {
                "security.protocol": "sasl_ssl",
                "sasl.mechanism": "SCRAM-SHA-512",
                "sasl.jaas.config": "hers",
                "ssl.truststore.location": "C:\\a b\\ca.pem",
            },
            {
                "security.protocol": "SASL_SSL",
                "sasl.mechanism": "SCRAM-SHA-512",
                "ssl.truststore.location": "C:\\a b\\ca.pem",
            },
        ),
        (
            {"security.protocol": "SSL", "sasl.username": "alice", "sasl.password": "x"},
            {"security.protocol": "SASL_SSL", "sasl.mechanism": "SCRAM-SHA-256"},
        ),
    ],
)
def test_the_login_is_the_tokens_and_all_else_is_kept(
    config: dict[str, str], expected: dict[str, str]
) -> None:
    """What is written is read by our client, and has no other secret than the token's."""
    found = parse_properties(settings_with_token(config, TOKEN.token.id, TOKEN.password))
    jaas = parse_jaas(found.pop("sasl.jaas.config"))
    assert found == expected
    identity = identity_of(found["sasl.mechanism"], jaas)
    assert (identity.user, identity.password) == ("an-id", TOKEN.password)
    assert identity.is_delegation_token
    assert identity.name == "delegation token 'an-id'"
    assert TOKEN.password not in repr((TOKEN, identity, jaas))
