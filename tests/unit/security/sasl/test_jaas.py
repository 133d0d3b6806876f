"""Login modules in Java's notation, and the user and password that a client takes from them."""

import pytest

from ottla.base.errors import OttlaError
from ottla.security.sasl.client import SaslIdentity, identity_of
from ottla.security.sasl.jaas import parse_jaas
from ottla.security.sasl.plain import read_plain

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"


def test_users_and_the_brokers_own_identity_are_options_of_one_module() -> None:
    """As Kafka's documentation writes them, on several lines."""
    jaas = parse_jaas(
        f'{PLAIN} required\n  username="admin"\n  password="ad\\"min"\n  user_alice="a;b c=d"'
        "\n  user_bob=plain;"
    )
    assert jaas.mechanism == "PLAIN"
    assert jaas.users == {"alice": "a;b c=d", "bob": "plain"}
    assert identity_of("PLAIN", jaas) == SaslIdentity("PLAIN", "admin", 'ad"min')
    assert "min" not in repr(jaas).replace("admin", "")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "secret",
        f"{PLAIN} required",
        f'{PLAIN} required password="secret"',
        f'{PLAIN} maybe password="secret";',
        f'{PLAIN} required password="secret;',
        f'{PLAIN} required password="secret"user="x";',
        f'{PLAIN} required password="secret" password="secret";',
        f'{PLAIN} required password="secret"; {SCRAM} required;',
        'com.sun.security.auth.module.JndiLoginModule required user.provider.url="ldap://secret";',
    ],
)
def test_any_other_text_is_refused_and_not_repeated(text) -> None:
    """A class that is not Kafka's is never loaded (CVE-2023-25194)."""
    with pytest.raises(OttlaError, match=r"sasl\.jaas\.config") as raised:
        parse_jaas(text)
    assert "secret" not in raised.value.message


def test_a_module_is_for_its_own_mechanism() -> None:
    """And a client needs user and password."""
    scram = parse_jaas(f'{SCRAM} required username="alice" password="secret";')
    assert identity_of("SCRAM-SHA-512", scram).user == "alice"
    for mechanism, jaas in [
        ("PLAIN", scram),
        ("GSSAPI", scram),
        ("SCRAM-SHA-256", parse_jaas(f"{SCRAM} required;")),
    ]:
        with pytest.raises(OttlaError):
            identity_of(mechanism, jaas)


def test_an_identity_does_not_show_its_password() -> None:
    """It goes through logs and tracebacks."""
    identity = SaslIdentity("PLAIN", "alice", "secret")
    assert "secret" not in repr(identity)
    exchange = identity.exchange(bytes)
    assert read_plain(exchange.first).password == "secret"
    assert exchange.step(b"") == b""
    with pytest.raises(OttlaError):
        exchange.step(b"more")
