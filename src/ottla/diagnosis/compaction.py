"""Explains why a log is compacted, or is not."""

from collections.abc import Sequence
from dataclasses import dataclass

from ottla.base.ids import TopicPartition
from ottla.base.quantities import iso
from ottla.client.admin import Admin
from ottla.client.admin.compaction import CleaningPass, CompactionStatus
from ottla.client.admin.configs import ConfigEntry, ConfigResourceType
from ottla.client.connection.cluster import connections_of

CLEANUP_POLICY = "cleanup.policy"


@dataclass(frozen=True, slots=True)
class CompactionDiagnosis:
    """A topic's cleanup policy, and the state of each replica's log, if the policy compacts."""

    policy: ConfigEntry
    standings: Sequence[CompactionStatus]

    @property
    def is_compacted(self) -> bool:
        return "compact" in (self.policy.value or "")


async def compaction_of(admin: Admin, name: TopicPartition) -> CompactionDiagnosis:
    """Return the cleanup policy of `name` and the compaction state of each replica.

    Raises UnknownTopic, and ConnectionFailed if a replica's broker is down.
    """
    entries = await admin.configs.describe(ConfigResourceType.TOPIC, name.topic, [CLEANUP_POLICY])
    await connections_of(admin).partition(name)
    found = CompactionDiagnosis(entries[CLEANUP_POLICY], ())
    if not found.is_compacted:
        return found
    return CompactionDiagnosis(found.policy, await admin.compaction.describe(name))


def verdict(one: CompactionStatus) -> str:
    """Return one sentence on the compaction of this log, with the reason."""
    if not one.is_enabled:
        return "not compacted: log.cleaner.enable is false, or log.cleaner.threads is 0"
    if one.is_running:
        return "being compacted now"
    if one.failure is not None:
        return f"not compacted, the last attempt failed: {one.failure}"
    if one.wanted_end >= 0:
        return f"waits to be compacted up to offset {one.wanted_end}, on request"
    if not one.dirty_bytes:
        return "nothing to compact"
    if one.is_overdue:
        return "due: records are older than max.compaction.lag.ms"
    if one.ratio > one.ratio_min:
        return "due: next in turn"
    return (
        f"not due: {one.ratio:.0%} of it is dirty, min.cleanable.dirty.ratio is {one.ratio_min:g}"
    )


def evidence(one: CompactionStatus) -> list[str]:
    """Return the evidence for the verdict, line by line."""
    lines = [
        f"offsets    {one.log_start_offset} to {one.log_end_offset}; clean below "
        f"{one.first_dirty}, may be cleaned below {one.end}",
        f"bytes      {one.clean_bytes:,} clean, {one.dirty_bytes:,} dirty",
    ]
    if one.end < one.log_end_offset:
        lines.insert(1, f"held up by {one.bound}")
    if one.last is not None:
        lines.append(f"last pass  {_pass(one.last)}; {one.pass_count} since the broker's start")
    else:
        lines.append("last pass  none since the broker's start")
    return lines


def _pass(one: CleaningPass) -> str:
    return (
        f"{iso(one.at_ms)}, {one.elapsed_ms / 1000:.1f} s: {one.records_kept:,} of "
        f"{one.records_read:,} records and {one.bytes_kept:,} of {one.bytes_read:,} bytes stayed"
    )
