"""The parts of a coordinator's partition that could not be read at loading; logged once."""

import logging

from ottla.base.ids import TopicPartition
from ottla.storage.recovery.readable import Damage

_log = logging.getLogger(__name__)

# This many are described one by one.
_EXAMPLES_MAX = 5


class Losses:
    """Records and pieces of files that were skipped while a partition was loaded."""

    def __init__(self, topic_partition: TopicPartition) -> None:
        self._topic_partition = topic_partition
        # Records that cannot be decoded, perhaps of a newer version.
        self.records = 0
        # Batches, or damaged bytes in place of batches.
        self.batches = 0
        self._examples: list[str] = []

    def __bool__(self) -> bool:
        return bool(self.records or self.batches)

    def note_record(self, offset: int, what: str) -> None:
        """Note that the record at `offset` cannot be decoded."""
        self.records += 1
        self._note(f"offset {offset}: {what}")

    def note_batch(self, offset: int, what: str) -> None:
        """Note that the records of the batch at `offset` cannot be read."""
        self.batches += 1
        self._note(f"offset {offset}: {what}")

    def note_damage(self, damage: Damage) -> None:
        """Note bytes of a file that are not a batch."""
        self.batches += 1
        self._note(
            f"offset {damage.offset}, {damage.size} bytes from {damage.position} on of "
            f"{damage.path}: {damage.what}"
        )

    def _note(self, example: str) -> None:
        if len(self._examples) < _EXAMPLES_MAX:
            self._examples.append(example)

    def warn(self, what: str) -> None:
        """Log one warning if anything was lost; `what` was loaded."""
        if not self:
            return
        count = self.records + self.batches
        more = count - len(self._examples)
        _log.warning(
            "%s: %d records and %d batches cannot be read and were skipped; the other %s are "
            "loaded. %s%s. Look at the disk and with `ottla log dump`; what was skipped is lost "
            "unless a replica or a copy has it",
            self._topic_partition,
            self.records,
            self.batches,
            what,
            "; ".join(self._examples),
            f"; and {more} more" if more else "",
        )
