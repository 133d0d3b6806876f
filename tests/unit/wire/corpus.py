"""A fixed set of arbitrary messages of every class and version, and its digests.

`agreed_digests.txt` was written by `python -m tests.integration.protocol.agree`, which had
Kafka's own Java code decode each message and encode it again to the same bytes.
"""

import hashlib
import random
from pathlib import Path

from ottla.wire.api import FIRST_PRIVATE_KEY
from ottla.wire.codec import encode
from ottla.wire.notation import Message
from tests.unit.wire.every_message import classes, versions
from tests.unit.wire.message_maker import make

DIGESTS = Path(__file__).with_name("agreed_digests.txt")
_MESSAGES_PER_VERSION = 8


def kafka_classes() -> list[type[Message]]:
    """The classes whose messages Kafka knows: all but those of Ottla's own APIs."""
    return [cls for cls in classes() if cls.__api_key__ < FIRST_PRIVATE_KEY]


def encoded(cls: type[Message]) -> list[tuple[int, bytes]]:
    """Return (version, bytes) of the messages of one class, always the same."""
    chance = random.Random(cls.__name__)
    return [
        (version, encode(make(cls, version, chance, private=False), version))
        for version in versions(cls)
        for _ in range(_MESSAGES_PER_VERSION)
    ]


def digest(cls: type[Message]) -> str:
    """Return the digest over all messages of one class."""
    total = hashlib.sha256()
    for version, message in encoded(cls):
        total.update(version.to_bytes(2) + len(message).to_bytes(4) + message)
    return total.hexdigest()[:16]


def agreed() -> dict[str, str]:
    """Return the digests that were agreed on with Kafka, by class name."""
    found = {}
    for line in DIGESTS.read_text().splitlines():
        name, agreed_digest = line.split()
        found[name] = agreed_digest
    return found
