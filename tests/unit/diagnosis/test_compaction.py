"""Why a log is compacted, or is not."""

from dataclasses import replace

from ottla.base.ids import TopicPartition
from ottla.client.admin.compaction import CleaningPass, CompactionStatus
from ottla.client.admin.configs import ConfigEntry, ConfigSource
from ottla.diagnosis.compaction import CompactionDiagnosis, evidence, verdict

STANDING = CompactionStatus(
    TopicPartition("planes", 0),
    broker_id=1,
    log_start_offset=0,
    log_end_offset=100,
    first_dirty=40,
    end=90,
    bound="min.compaction.lag.ms",
    clean_bytes=600,
    dirty_bytes=400,
    ratio_min=0.5,
    is_overdue=False,
    is_enabled=True,
    is_running=False,
    wanted_end=-1,
    pass_count=0,
    last=None,
    estimate=None,
    failure=None,
)


def test_the_verdict_is_the_first_reason_that_holds() -> None:
    """Switched off, running, failed, on request, clean, overdue, in turn, not due."""
    assert verdict(STANDING) == "not due: 40% of it is dirty, min.cleanable.dirty.ratio is 0.5"
    assert verdict(replace(STANDING, ratio_min=0.3)) == "due: next in turn"
    assert verdict(replace(STANDING, is_overdue=True)) == (
        "due: records are older than max.compaction.lag.ms"
    )
    assert verdict(replace(STANDING, dirty_bytes=0)) == "nothing to compact"
    assert verdict(replace(STANDING, wanted_end=90)) == (
        "waits to be compacted up to offset 90, on request"
    )
    assert verdict(replace(STANDING, failure="no room", wanted_end=90)) == (
        "not compacted, the last attempt failed: no room"
    )
    assert verdict(replace(STANDING, is_running=True, failure="no room")) == "being compacted now"
    assert verdict(replace(STANDING, is_enabled=False, is_running=True)) == (
        "not compacted: log.cleaner.enable is false, or log.cleaner.threads is 0"
    )


def test_the_evidence_names_offsets_bytes_and_the_last_pass() -> None:
    """What holds the end up is named only where something does."""
    assert evidence(STANDING) == [
        "offsets    0 to 100; clean below 40, may be cleaned below 90",
        "held up by min.compaction.lag.ms",
        "bytes      600 clean, 400 dirty",
        "last pass  none since the broker's start",
    ]
    last = CleaningPass(40, 7, 1_000, 7, 0, 0, 20_000, 600, 1_500, 60_000)
    assert evidence(replace(STANDING, end=100, last=last, pass_count=3)) == [
        "offsets    0 to 100; clean below 40, may be cleaned below 100",
        "bytes      600 clean, 400 dirty",
        "last pass  1970-01-01T00:01:00.000Z, 1.5 s: 7 of 1,000 records and 600 of 20,000 bytes "
        "stayed; 3 since the broker's start",
    ]


def test_a_policy_with_delete_and_compact_compacts() -> None:
    """An empty one does not."""

    def is_compacted(policy: str | None) -> bool:
        entry = ConfigEntry("cleanup.policy", policy, ConfigSource.TOPIC, False, False)
        return CompactionDiagnosis(entry, ()).is_compacted

    assert is_compacted("compact,delete")
    assert not is_compacted("delete")
    assert not is_compacted(None)
