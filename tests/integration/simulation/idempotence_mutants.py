"""Rules of idempotent producers, each broken by itself (S27)."""

from typing import Any

import pytest

from ottla.record.header import BatchHeader
from ottla.storage.cleaner.survivors import Keeping
from ottla.storage.log import retention, truncation
from ottla.storage.log.log import Log
from ottla.storage.producers import state as producer_state
from ottla.storage.segment.segment import Segment


def followers_forget_producers(patch: pytest.MonkeyPatch) -> None:
    """What a follower copies tells it nothing of those who sent it."""
    append = Log.append_as_follower

    def copy(self: Log, buffer: Any, now_ms: int) -> Any:
        appended = append(self, buffer, now_ms)
        self.producers.entries.clear()
        return appended

    patch.setattr(Log, "append_as_follower", copy)


def a_start_forgets_producers(patch: pytest.MonkeyPatch) -> None:
    """A log that is opened knows nobody."""
    make = Log.__init__

    def make_anew(self: Log, *arguments: Any, **named: Any) -> None:
        make(self, *arguments, **named)
        self.producers.entries.clear()

    patch.setattr(Log, "__init__", make_anew)


def a_cut_forgets_nothing(patch: pytest.MonkeyPatch) -> None:
    """Batches that were cut off a log are still known as written."""
    patch.setattr(truncation, "_reload_producers", lambda *_: None)


def gaps_are_taken(patch: pytest.MonkeyPatch) -> None:
    """A batch is taken though the one before it is missing."""
    patch.setattr(producer_state, "check_order", lambda *_: None)


def old_batches_are_gaps(patch: pytest.MonkeyPatch) -> None:
    """What was appended before the last five batches of a producer is called out of order."""
    patch.setattr(producer_state.ProducerEntry, "is_before_kept", lambda *_: False)


def every_older_sequence_was_appended(patch: pytest.MonkeyPatch) -> None:
    """It is not asked from where on this log knows the producer."""
    patch.setattr(producer_state.ProducerEntry, "is_before_kept", _is_older)


def _is_older(entry: producer_state.ProducerEntry, header: BatchHeader) -> bool:
    return header.last_sequence < entry.batches[0].first_sequence


def sequences_do_not_wrap(patch: pytest.MonkeyPatch) -> None:
    """After the last number comes one more."""
    patch.setattr(producer_state, "SEQUENCE_MASK", 2**62 - 1)


def retention_forgets_producers(patch: pytest.MonkeyPatch) -> None:
    """Who has no record left in a log is a stranger there."""
    set_aside = retention.set_segments_aside

    def drop(log: Log, removed: list[Segment]) -> Any:
        entries = log.producers.entries
        for producer_id, entry in list(entries.items()):
            if entry.last_offset < log.log_start_offset:
                del entries[producer_id]
        return set_aside(log, removed)

    patch.setattr(retention, "set_segments_aside", drop)


def compaction_takes_the_last_batch(patch: pytest.MonkeyPatch) -> None:
    """A producer's last batch goes when its records are overwritten."""
    patch.setattr(
        Keeping, "_must_stay", lambda self, header: header.last_offset + 1 == self._end_offset
    )
