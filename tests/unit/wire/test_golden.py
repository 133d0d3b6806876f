"""Bytes frozen from the encoders of Apache Kafka's Java client 4.3.1, for the same values."""

import pytest

from ottla.wire.codec import decode, encode
from ottla.wire.notation import Message
from tests.unit.wire.golden_control import GOLDEN_CONTROL
from tests.unit.wire.golden_data import GOLDEN_DATA

GOLDEN = GOLDEN_DATA + GOLDEN_CONTROL
_IDS = [f"{type(message).__name__}-{version}" for version, message, _ in GOLDEN]


@pytest.mark.parametrize(("version", "message", "kafka"), GOLDEN, ids=_IDS)
def test_a_message_is_encoded_as_kafka_encodes_it(
    version: int, message: Message, kafka: str
) -> None:
    """Encoding gives, byte for byte, what the Java client gives."""
    assert encode(message, version).hex() == kafka


@pytest.mark.parametrize(("version", "message", "kafka"), GOLDEN, ids=_IDS)
def test_a_message_of_kafka_is_understood(version: int, message: Message, kafka: str) -> None:
    """Decoding what the Java client gives returns the values it was given."""
    assert decode(type(message), version, bytes.fromhex(kafka)) == message
