"""The topic settings that a log needs, resolved and typed.

`base.settings` has the table of settings (names, defaults, sources); the composition root builds a
LogConfig from it for each topic. Names and defaults are Kafka's.
"""

from dataclasses import dataclass

_DAY_MS = 24 * 60 * 60 * 1000
LONG_MAX = 2**63 - 1


@dataclass(frozen=True, slots=True)
class LogConfig:
    """Settings of one topic's logs. Sizes in bytes, times in milliseconds; -1 means no limit."""

    segment_bytes: int = 1 << 30
    segment_ms: int = 7 * _DAY_MS
    segment_jitter_ms: int = 0
    segment_index_bytes: int = 10 << 20
    index_interval_bytes: int = 4096
    retention_ms: int = 7 * _DAY_MS
    retention_bytes: int = -1
    file_delete_delay_ms: int = 60_000
    flush_messages: int = LONG_MAX
    flush_ms: int = LONG_MAX
    max_message_bytes: int = 1_048_588
    # "producer" keeps the batch as it came; else "uncompressed", "gzip", "snappy", "lz4", "zstd".
    compression_type: str = "producer"
    compression_gzip_level: int = -1
    compression_lz4_level: int = 9
    compression_zstd_level: int = 3
    message_timestamp_type: str = "CreateTime"
    message_timestamp_before_max_ms: int = LONG_MAX
    message_timestamp_after_max_ms: int = 3_600_000
    cleanup_policy: frozenset[str] = frozenset({"delete"})
    min_cleanable_dirty_ratio: float = 0.5
    min_compaction_lag_ms: int = 0
    max_compaction_lag_ms: int = LONG_MAX
    delete_retention_ms: int = _DAY_MS
    min_insync_replicas: int = 1
    unclean_leader_election_enable: bool = False
    preallocate: bool = False
    # Whether `retention_ms` counts from the arrival of records, not from their timestamps.
    retention_by_append: bool = False
    # Consumer groups that retention waits for, and how many bytes it holds for them, and how long.
    hold_groups: frozenset[str] = frozenset()
    hold_max_bytes: int = 10 << 30
    hold_max_ms: int = 7 * _DAY_MS

    @property
    def is_compacted(self) -> bool:
        return "compact" in self.cleanup_policy
