"""When a compaction on request is done."""

from dataclasses import replace

from ottla.operations.topics import is_done
from tests.unit.diagnosis.test_compaction import STANDING


def test_a_compaction_is_done_when_nothing_is_asked_for_and_nothing_runs() -> None:
    """A pass that began before the request may run without counting for it."""
    assert is_done(STANDING)
    assert not is_done(replace(STANDING, wanted_end=90))
    assert not is_done(replace(STANDING, is_running=True))
