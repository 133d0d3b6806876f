"""Every message in every version against bytes that Kafka's Java code agreed on."""

import pytest

from ottla.wire.notation import Message
from tests.unit.wire.corpus import agreed, digest, kafka_classes


@pytest.mark.parametrize("cls", kafka_classes(), ids=lambda cls: cls.__name__)
def test_messages_are_the_bytes_that_kafka_agreed_on(cls: type[Message]) -> None:
    """The same values give the bytes that Kafka decoded, encoded again and found equal."""
    assert digest(cls) == agreed()[cls.__name__]


def test_no_class_is_left_that_does_not_exist() -> None:
    """The list of digests names the classes there are."""
    assert set(agreed()) == {cls.__name__ for cls in kafka_classes()}
