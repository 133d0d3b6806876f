"""A partition's log as the cores see it: where it begins and ends, and its leader epochs."""

from typing import Protocol


class LogView(Protocol):
    """Read only. `storage.log.Log` is one."""

    @property
    def log_start_offset(self) -> int: ...

    @property
    def log_end_offset(self) -> int: ...

    @property
    def first_epoch(self) -> int:
        """The earliest leader epoch known; -1 for none. Older ones cannot be compared."""
        ...

    @property
    def last_epoch(self) -> int:
        """The leader epoch of the last record; -1 where the log holds none.

        Not the last known epoch: an epoch without records is left out.
        """
        ...

    def end_offset_for_epoch(self, leader_epoch: int) -> tuple[int, int]:
        """(greatest epoch not above `leader_epoch`, its exclusive end) (KIP-101, KIP-279).

        (-1, -1) where no such epoch is known.
        """
        ...
