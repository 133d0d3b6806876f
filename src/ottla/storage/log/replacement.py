"""What a log knows of a compaction that is about to replace some of its segments."""

from typing import Protocol


class Replacement(Protocol):
    """Segments that are about to take the place of others."""

    def settle(self) -> None:
        """The log's files are about to change: nothing else may change them after this.

        A replacement that the log does not read yet must not come into it, now or after a crash;
        one that it does read is put in place. Raises StorageError.
        """
        ...
