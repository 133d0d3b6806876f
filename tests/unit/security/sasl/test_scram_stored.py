"""Credentials as text, and what unknown users are shown."""

import pytest

from ottla.security.sasl.scram_keys import (
    ScramCredential,
    ScramMechanism,
    credential_text,
    mechanism_numbered,
    parse_credential,
)

CREDENTIAL = ScramCredential(b"salt", 4096, b"\x00stored", b"server\xff")
TEXT = "salt=c2FsdA==,stored_key=AHN0b3JlZA==,server_key=c2VydmVy/w==,iterations=4096"


def test_a_credential_is_written_as_kafka_wrote_it() -> None:
    """So that a credential of Kafka's ZooKeeper is one here."""
    assert credential_text(CREDENTIAL) == TEXT
    assert parse_credential(TEXT) == CREDENTIAL


@pytest.mark.parametrize(
    "text",
    [
        "",
        "password=secret",
        TEXT.replace("4096", "many"),
        TEXT.replace("c2FsdA==", "!"),
        TEXT + ",x=1",
    ],
)
def test_another_text_is_no_credential(text) -> None:
    """The error does not repeat it."""
    with pytest.raises(ValueError, match=r"fields|field") as raised:
        parse_credential(text)
    assert "secret" not in str(raised.value)


def test_mechanisms_have_kafkas_numbers() -> None:
    """1 and 2; any other is unknown."""
    assert mechanism_numbered(1) is ScramMechanism.SCRAM_SHA_256
    assert mechanism_numbered(2) is ScramMechanism.SCRAM_SHA_512
    assert mechanism_numbered(0) is None
