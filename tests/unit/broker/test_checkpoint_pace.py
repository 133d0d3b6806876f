"""Laws of when a recovery is let start later in a log."""

from dataclasses import dataclass
from typing import cast

from ottla.broker.partitions.flush import CheckpointPace
from ottla.storage.log.log import Log


@dataclass
class Size:
    """What of a log matters here."""

    log_end_offset: int
    size_bytes: int


def is_due(at: Size, now_ms: int, pace: CheckpointPace) -> bool:
    return pace.is_due(cast("Log", at), now_ms)


def begun() -> CheckpointPace:
    """At offset 10 and 1,000 bytes, at 5 s."""
    return CheckpointPace(cast("Log", Size(10, 1_000)), 5_000)


def test_a_log_that_did_not_grow_is_never_due() -> None:
    """However long ago it was."""
    assert not is_due(Size(10, 1_000), 5_000_000, begun())


def test_a_log_that_grew_is_due_after_a_minute_and_64_kib_or_16_mib() -> None:
    """Whichever comes first; a few records are read again more cheaply than they are flushed."""
    assert not is_due(Size(11, 66_536), 64_999, begun())
    assert is_due(Size(11, 66_536), 65_000, begun())
    assert not is_due(Size(11, 66_535), 5_000_000, begun())
    assert not is_due(Size(11, 16_778_215), 5_001, begun())
    assert is_due(Size(11, 16_778_216), 5_001, begun())


def test_after_a_checkpoint_growth_counts_from_there() -> None:
    """And from the size of a copy, where the log has moved to one meanwhile."""
    pace = begun()
    pace.note(cast("Log", Size(20, 30_000_000)), 70_000)
    assert not is_due(Size(21, 30_065_535), 5_000_000, pace)
    pace.on_copied(cast("Log", Size(21, 10_000_000)))
    assert is_due(Size(22, 26_777_216), 70_001, pace)
