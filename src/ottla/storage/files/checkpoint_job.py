"""Writes a directory's offset checkpoints in the background, in order."""

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field

from ottla.base.ids import TopicPartition
from ottla.storage.disk.errors import storage_error
from ottla.storage.disk.filesystem import FileSystem
from ottla.storage.files.checkpoint import encode_offsets, write_atomically
from ottla.storage.files.offset_ledger import LedgerJob


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
    # Others, by path.
    files: dict[str, bytes] = field(default_factory=dict)

    def run(self) -> None:
        """Write the checkpoints, unless newer ones are; in any thread. Raises StorageError."""
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
