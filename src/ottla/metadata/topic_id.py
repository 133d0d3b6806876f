"""Topic ids as text: Kafka's URL-safe base64 without padding (KIP-516)."""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from uuid import UUID


def topic_id_text(topic_id: UUID) -> str:
    """22 characters, as in partition.metadata and in Kafka's tools."""
    return urlsafe_b64encode(topic_id.bytes).rstrip(b"=").decode()


def topic_id_value(text: str) -> UUID:
    """Parse the text of `topic_id_text`. Raises ValueError if it is invalid."""
    if len(text) != 22:
        raise ValueError(f"{text!r} is no topic id: it must have 22 characters")
    return UUID(bytes=urlsafe_b64decode(text + "=="))


def topic_id_of(random_bytes: bytes) -> UUID:
    """A version 4 UUID from 16 random bytes. It is never one of the reserved ids 0 and 1."""
    return UUID(bytes=random_bytes, version=4)
