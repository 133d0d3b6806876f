"""The view that the cores have of a partition's log: its ends and its leader epochs."""

from typing import Protocol


class LogView(Protocol):
    """A read-only view of a log, such as `storage.log.log.Log`."""

    @property
    def log_start_offset(self) -> int: ...

    @property
    def log_end_offset(self) -> int: ...

    @property
    def first_epoch(self) -> int:
        """The earliest leader epoch known; -1 for none.

        Records of older epochs cannot be compared.
        """
        ...

    @property
    def last_epoch(self) -> int:
        """The leader epoch of the last record; -1 for an empty log.

        This may be lower than the last known epoch, which may have no records.
        """
        ...

    def end_offset_for_epoch(self, leader_epoch: int) -> tuple[int, int]:
        """Return the greatest known epoch up to `leader_epoch`, and its end offset.

        The end offset is exclusive. Returns (-1, -1) if no such epoch is known. See KIP-101 and
        KIP-279.
        """
        ...
