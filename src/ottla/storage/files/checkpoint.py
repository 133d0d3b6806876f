"""Small files that are replaced as a whole: Kafka's checkpoints of offsets per partition.

Format: `0` (version), number of lines, then `topic partition offset` per line. Kafka's files:
`recovery-point-offset-checkpoint`, `replication-offset-checkpoint`,
`log-start-offset-checkpoint`, `cleaner-offset-checkpoint`.
"""

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field

from ottla.base.ids import TopicPartition
from ottla.storage.disk.errors import storage_error
from ottla.storage.disk.filesystem import FileSystem, write_atomically
from ottla.storage.files.offset_ledger import LedgerJob

RECOVERY_POINTS = "recovery-point-offset-checkpoint"
HIGH_WATERMARKS = "replication-offset-checkpoint"
LOG_START_OFFSETS = "log-start-offset-checkpoint"
# The ends of the clean parts of compacted logs.
CLEANED_OFFSETS = "cleaner-offset-checkpoint"


def encode_offsets(offsets: Mapping[TopicPartition, int]) -> bytes:
    """The bytes of an offset checkpoint."""
    lines = [f"{p.topic} {p.partition} {offset}\n" for p, offset in sorted(offsets.items())]
    return f"0\n{len(lines)}\n{''.join(lines)}".encode()


def decode_offsets(encoded: bytes) -> dict[TopicPartition, int]:
    """Read an offset checkpoint. Raises ValueError if the bytes are not one."""
    lines = encoded.decode("utf-8").splitlines()
    if len(lines) < 2 or lines[0].strip() != "0" or int(lines[1]) != len(lines) - 2:
        raise ValueError("not an offset checkpoint of version 0, or cut short")
    offsets = {}
    for line in lines[2:]:
        topic, partition, offset = line.split()
        offsets[TopicPartition(topic, int(partition))] = int(offset)
    return offsets


@dataclass(slots=True)
class CheckpointOrder:
    """Keeps the jobs of one directory in order, whichever thread runs them."""

    prepared: int = 0
    # The newest job that was written whole.
    written: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)


@dataclass(slots=True)
class CheckpointJob:
    """The checkpoints of one directory as they were when the job was made."""

    filesystem: FileSystem
    # The path of the log directory.
    path: str
    # The offsets of each file. Encoded when the job runs: that takes longer than a copy.
    offsets: Mapping[str, Mapping[TopicPartition, int]]
    order: CheckpointOrder
    number: int
    # The ledgers of logs in this directory: a ledger must record a deletion before the log start
    # offset shows it.
    ledgers: list[LedgerJob] = field(default_factory=list)
    # Other files to write, by path.
    files: dict[str, bytes] = field(default_factory=dict)

    def run(self) -> None:
        """Write the checkpoints, unless newer ones are written. In any thread. StorageError."""
        with self.order.lock:
            if self.number < self.order.written:
                return
            for ledger in self.ledgers:
                try:
                    ledger.run()
                except FileNotFoundError:
                    continue  # The log has been deleted.
                except OSError as error:
                    raise storage_error(error, ledger.path, "write a ledger") from error
            encoded = {f"{self.path}/{k}": encode_offsets(v) for k, v in self.offsets.items()}
            for path, content in (encoded | self.files).items():
                try:
                    write_atomically(self.filesystem, path, content)
                except OSError as error:
                    raise storage_error(error, path, "write a checkpoint") from error
            self.order.written = self.number
