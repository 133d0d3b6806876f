"""Small files that are replaced as a whole: Kafka's checkpoints of offsets per partition.

Format: `0` (version), number of lines, then `topic partition offset` per line. Kafka's files:
`recovery-point-offset-checkpoint`, `replication-offset-checkpoint`,
`log-start-offset-checkpoint`, `cleaner-offset-checkpoint`.
"""

from collections.abc import Mapping

from ottla.base.ids import TopicPartition
from ottla.storage.disk.filesystem import FileSystem
from ottla.storage.files.names import TEMPORARY_SUFFIX

RECOVERY_POINTS = "recovery-point-offset-checkpoint"
HIGH_WATERMARKS = "replication-offset-checkpoint"
LOG_START_OFFSETS = "log-start-offset-checkpoint"
# The ends of the clean parts of compacted logs.
CLEANED_OFFSETS = "cleaner-offset-checkpoint"


def write_atomically(
    filesystem: FileSystem,
    path: str,
    content: bytes,
    *,
    sync_folder: bool = True,
    durable: bool = True,
) -> None:
    """Replace the file at `path`: after a crash it holds the old or the new content whole.

    Without `sync_folder` the caller makes the new name durable, when it has more to write. Where it
    is not `durable`, this holds after the death of the process, but not after a power cut.
    """
    temporary = path + TEMPORARY_SUFFIX
    filesystem.unlink(temporary)
    file = filesystem.open(temporary, create=True)
    try:
        if content:
            file.append(content)
        if durable:
            file.fsync()
    finally:
        file.close()
    filesystem.rename(temporary, path)
    if sync_folder and durable:
        filesystem.fsync_directory(path.rpartition("/")[0])


def encode_offsets(offsets: Mapping[TopicPartition, int]) -> bytes:
    """The bytes of an offset checkpoint."""
    lines = [f"{p.topic} {p.partition} {offset}\n" for p, offset in sorted(offsets.items())]
    return f"0\n{len(lines)}\n{''.join(lines)}".encode()


def decode_offsets(encoded: bytes) -> dict[TopicPartition, int]:
    """Read an offset checkpoint. Raises ValueError where it is none."""
    lines = encoded.decode("utf-8").splitlines()
    if len(lines) < 2 or lines[0].strip() != "0" or int(lines[1]) != len(lines) - 2:
        raise ValueError("not an offset checkpoint of version 0, or cut short")
    offsets = {}
    for line in lines[2:]:
        topic, partition, offset = line.split()
        offsets[TopicPartition(topic, int(partition))] = int(offset)
    return offsets
