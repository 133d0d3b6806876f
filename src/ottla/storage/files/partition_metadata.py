"""`partition.metadata`: the topic id of a partition's folder (KIP-516)."""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from uuid import UUID

from ottla.storage.disk.filesystem import FileSystem, write_atomically
from ottla.storage.files.names import PARTITION_METADATA


def encode_id(identity: UUID) -> str:
    """A UUID as Kafka prints it: 22 characters of URL-safe base 64."""
    return urlsafe_b64encode(identity.bytes).decode().rstrip("=")


def decode_id(text: str) -> UUID:
    """Read what `encode_id` returns. Raises ValueError."""
    return UUID(bytes=urlsafe_b64decode(text + "=" * (-len(text) % 4)))


def encode(topic_id: UUID) -> bytes:
    """The file's bytes."""
    return f"version: 0\ntopic_id: {encode_id(topic_id)}".encode()


def decode(encoded: bytes) -> UUID:
    """Read the file's bytes. Raises ValueError."""
    lines = encoded.decode("ascii").splitlines()
    fields = dict(line.split(": ", 1) for line in lines if ": " in line)
    if fields.get("version") != "0" or "topic_id" not in fields:
        raise ValueError("not a partition.metadata of version 0")
    return decode_id(fields["topic_id"])


def read(filesystem: FileSystem, folder: str) -> UUID | None:
    """Return the topic id of a partition's folder, None if it has none. Raises OSError."""
    try:
        return decode(filesystem.read_bytes(f"{folder}/{PARTITION_METADATA}"))
    except (FileNotFoundError, ValueError):
        return None


def is_damaged(known: UUID, topic_id: UUID) -> bool:
    """Return whether `known`, read from a file, may be `topic_id` with one damaged character.

    Ids are random, so those of two topics differ in nearly all of their 22 characters.
    """
    pairs = zip(encode_id(known), encode_id(topic_id), strict=True)
    return sum(one != other for one, other in pairs) == 1


def write(filesystem: FileSystem, folder: str, topic_id: UUID) -> None:
    """Write the topic id of a folder. Raises OSError.

    The first flush of the log makes the file durable. A power cut before that may leave anything in
    it, but then there are no flushed records that could be lost.
    """
    path = f"{folder}/{PARTITION_METADATA}"
    write_atomically(filesystem, path, encode(topic_id), durable=False)


def begin(filesystem: FileSystem, folder: str, topic_id: UUID) -> None:
    """Write the topic id of a folder that was just created. Raises OSError.

    A crash may leave the file empty; then the folder has no records.
    """
    file = filesystem.open(f"{folder}/{PARTITION_METADATA}", create=True)
    try:
        file.append(encode(topic_id))
    finally:
        file.close()
