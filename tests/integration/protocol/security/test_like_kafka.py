"""Logins, users and delegation tokens: Ottla answers as Apache Kafka does."""

from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from rig.kafka import available

from ottla.client.sync import Admin
from ottla.security.principal import Principal
from tests.integration.protocol.security import logins, token_differences, tokens, users
from tests.integration.protocol.security.pair import Ports, kafka_ports, own_ports, until

pytestmark = pytest.mark.skipif(available() is not None, reason=str(available()))


@pytest.fixture(scope="module")
def pair() -> Iterator[tuple[Ports, Ports]]:
    with own_ports() as own, kafka_ports() as kafkas:
        yield own, kafkas


@pytest.mark.parametrize("part", [tokens, logins, users], ids=lambda part: part.__name__)
def test_every_answer_is_kafkas(pair: tuple[Ports, Ports], part: ModuleType) -> None:
    """Codes, names and times of the same requests in the same order."""
    own, kafkas = (part.transcript(ports) for ports in pair)
    assert own == kafkas


def test_what_differs_on_purpose_is_known(pair: tuple[Ports, Ports]) -> None:
    """Of users' credentials, requests before a login, and delegation tokens."""
    own, kafkas = pair
    assert users.differing(own) == {what: ours for what, (_, ours, _) in users.DIFFERENT.items()}
    assert users.differing(kafkas) == {
        what: theirs for what, (_, _, theirs) in users.DIFFERENT.items()
    }
    assert (logins.differing(own), logins.differing(kafkas)) == logins.DIFFERENT[2:]
    of_tokens = [token_differences.differing(ports) for ports in pair]
    assert of_tokens == [
        {what: by[index] for what, by in token_differences.DIFFERENT.items()} for index in (0, 1)
    ]


@pytest.mark.parametrize("index", [0, 1], ids=["Ottla", "Kafka"])
def test_our_client_manages_users_of_both(pair: tuple[Ports, Ports], index: int) -> None:
    """A password is set for both mechanisms, and all credentials are removed."""
    with Admin(f"127.0.0.1:{pair[index].plain}") as admin:
        admin.users.set_password("dave", "a secret")
        (dave,) = until(
            lambda: admin.users.find(["dave"]),
            lambda users: users and len(users[0].credentials) == 2,
        )
        assert sorted(each.sasl_name for each in dave.credentials) == [
            "SCRAM-SHA-256",
            "SCRAM-SHA-512",
        ]
        admin.users.remove("dave")
        until(lambda: admin.users.find(["dave"]), lambda users: users == [])


@pytest.mark.parametrize("index", [0, 1], ids=["Ottla", "Kafka"])
def test_our_client_manages_tokens_of_both(
    pair: tuple[Ports, Ports],
    index: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It makes one, finds it, renews it, logs in with it, and ends it."""
    port = pair[index].sasl
    file = tmp_path / "client.properties"
    monkeypatch.setenv("OTTLA_CONFIG", str(file))
    file.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n"
        "sasl.username=alice\nsasl.password=alice-secret\n"
    )
    with Admin(f"127.0.0.1:{port}") as admin:
        made = admin.tokens.create(renewers=[Principal("User", "bob")], lifetime_ms=3_600_000)
        assert made.token.max_ms - made.token.issued_ms == 3_600_000
        found = until(
            lambda: [one for one in admin.tokens.find() if one.token.id == made.token.id],
            lambda found: found != [],
        )
        assert found == [made]
        assert admin.tokens.renew(made.hmac) == made.token.max_ms
        file.write_text(
            "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=SCRAM-SHA-256\n"
            "sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required"
            f' username="{made.token.id}" password="{made.password}" tokenauth="true";\n'
        )
        with Admin(f"127.0.0.1:{port}") as other:
            assert other.cluster.brokers()
        admin.tokens.expire(made.hmac)
