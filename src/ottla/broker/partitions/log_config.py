"""The settings of a log: those of its topic, with the broker's settings as defaults."""

from ottla.base.settings import BrokerSettings, topic_value
from ottla.controller.election import Rules
from ottla.metadata.image import ClusterImage, TopicImage
from ottla.storage.segment.config import LogConfig


def log_config(topic: TopicImage, settings: BrokerSettings) -> LogConfig:
    """Return the settings of a topic's logs: the topic's own, else the broker's, else defaults."""

    def integer(name: str) -> int:
        value = topic_value(name, topic.configs, settings).value
        assert isinstance(value, int), name
        return value

    def text(name: str) -> str:
        return str(topic_value(name, topic.configs, settings).value)

    cleanup = topic_value("cleanup.policy", topic.configs, settings).value
    assert isinstance(cleanup, tuple)
    ratio = topic_value("min.cleanable.dirty.ratio", topic.configs, settings).value
    assert isinstance(ratio, float)
    readers = topic_value("ottla.retention.hold.groups", topic.configs, settings).value
    assert isinstance(readers, tuple)
    small = topic.configs.get("internal.segment.bytes")
    return LogConfig(
        segment_bytes=int(small) if small else integer("segment.bytes"),
        segment_ms=integer("segment.ms"),
        segment_jitter_ms=integer("segment.jitter.ms"),
        segment_index_bytes=integer("segment.index.bytes"),
        index_interval_bytes=integer("index.interval.bytes"),
        retention_ms=integer("retention.ms"),
        retention_bytes=integer("retention.bytes"),
        file_delete_delay_ms=integer("file.delete.delay.ms"),
        flush_messages=integer("flush.messages"),
        flush_ms=integer("flush.ms"),
        max_message_bytes=integer("max.message.bytes"),
        compression_type=text("compression.type"),
        compression_gzip_level=integer("compression.gzip.level"),
        compression_lz4_level=integer("compression.lz4.level"),
        compression_zstd_level=integer("compression.zstd.level"),
        message_timestamp_type=text("message.timestamp.type"),
        message_timestamp_before_max_ms=integer("message.timestamp.before.max.ms"),
        message_timestamp_after_max_ms=integer("message.timestamp.after.max.ms"),
        cleanup_policy=frozenset(cleanup),
        min_cleanable_dirty_ratio=ratio,
        min_compaction_lag_ms=integer("min.compaction.lag.ms"),
        max_compaction_lag_ms=integer("max.compaction.lag.ms"),
        delete_retention_ms=integer("delete.retention.ms"),
        min_insync_replicas=integer("min.insync.replicas"),
        unclean_leader_election_enable=bool(integer("unclean.leader.election.enable")),
        preallocate=bool(integer("preallocate")),
        retention_by_append=text("ottla.retention.by") == "append",
        hold_groups=frozenset(str(reader) for reader in readers),
        hold_max_bytes=integer("ottla.retention.hold.max.bytes"),
        hold_max_ms=integer("ottla.retention.hold.max.ms"),
    )


def election_rules(topic: TopicImage, image: ClusterImage, settings: BrokerSettings) -> Rules:
    """Return the current election settings of a topic.

    The settings in `image` are used if it has the topic, because they are newer than in `topic`.
    """
    shown = image.topics_by_id.get(topic.id)
    configs = topic.configs if shown is None else shown.configs
    min_isr = topic_value("min.insync.replicas", configs, settings).value
    assert isinstance(min_isr, int)
    unclean = topic_value("unclean.leader.election.enable", configs, settings).value
    return Rules(min_isr, unclean=bool(unclean))
