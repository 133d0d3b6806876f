"""A partition's log in memory: records are (leader epoch, value), numbered from 0."""

from ottla.controller.election import LogReach
from ottla.storage.index.leader_epochs import LeaderEpochs

Record = tuple[int, int]
# Stands where a log that began again at a higher offset has nothing.
HOLE: Record = (-1, -1)


class WalkLog:
    """What survives a crash, and how much of it a power cut may take.

    Invariant: synced_end <= len(records), log_start_offset <= len(records).
    """

    __slots__ = ("epochs", "log_start_offset", "records", "synced_end")

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.epochs = LeaderEpochs()
        self.log_start_offset = 0
        # Below it everything is on the disk.
        self.synced_end = 0

    @property
    def log_end_offset(self) -> int:
        return len(self.records)

    @property
    def first_epoch(self) -> int:
        return self.epochs.epochs[0] if self.epochs.epochs else -1

    @property
    def last_epoch(self) -> int:
        records = self.records
        return records[-1][0] if len(records) > self.log_start_offset else -1

    def reach(self) -> LogReach:
        """What a controller compares of this log."""
        return LogReach(self.epochs.latest, len(self.records), self.log_start_offset)

    def end_offset_for_epoch(self, leader_epoch: int) -> tuple[int, int]:
        """As the storage's log has it."""
        return self.epochs.end_offset(leader_epoch, len(self.records))

    def begin_epoch(self, leader_epoch: int) -> None:
        """A leader's term begins at the end."""
        self.epochs.assign(leader_epoch, len(self.records))

    def append(self, record: Record) -> None:
        """Add one record at the end."""
        self.epochs.assign(record[0], len(self.records))
        self.records.append(record)

    def truncate_to(self, end: int) -> None:
        """Drop everything at and above `end`."""
        if end < len(self.records):
            del self.records[end:]
            self.epochs.truncate_from_end(end)
            self.synced_end = min(self.synced_end, end)

    def restart_at(self, offset: int) -> None:
        """Go on, empty, at `offset`."""
        self.records = [HOLE] * offset
        self.log_start_offset = self.synced_end = offset
        self.epochs = LeaderEpochs()

    def advance_log_start(self, offset: int) -> None:
        """Forget what is below `offset`."""
        self.log_start_offset = offset
        self.epochs.truncate_from_start(offset)

    def sync(self) -> None:
        """Everything is on the disk."""
        self.synced_end = len(self.records)

    def recover(self) -> None:
        """After a crash: as the storage loads a log."""
        self.records += [HOLE] * (self.log_start_offset - len(self.records))
        self.epochs.truncate_from_end(len(self.records))
        for offset in range(self.log_start_offset, len(self.records)):
            if self.records[offset][0] > self.epochs.latest:
                self.epochs.assign(self.records[offset][0], offset)
        self.epochs.truncate_from_start(self.log_start_offset)
