"""Topic settings: what `kafka-configs --topic` and CreateTopics may set."""

from ottla.base.settings.tables.setting import (
    BOOLEAN,
    CLUSTER_WIDE,
    INT,
    LIST,
    LONG,
    LONG_MAX,
    STRING,
    Setting,
    Use,
)
from ottla.base.settings.tables.validators import THROTTLED_REPLICAS, at_least, one_of

# Topic settings that are derived from a broker setting. Type, default, rule and description are the
# same, and the broker's value is the default of a topic that does not set its own.
OF_BROKER: dict[str, str] = {
    "cleanup.policy": "log.cleanup.policy",
    "compression.gzip.level": "compression.gzip.level",
    "compression.lz4.level": "compression.lz4.level",
    "compression.type": "compression.type",
    "compression.zstd.level": "compression.zstd.level",
    "delete.retention.ms": "log.cleaner.delete.retention.ms",
    "file.delete.delay.ms": "log.segment.delete.delay.ms",
    "flush.messages": "log.flush.interval.messages",
    "index.interval.bytes": "log.index.interval.bytes",
    "max.compaction.lag.ms": "log.cleaner.max.compaction.lag.ms",
    "max.message.bytes": "message.max.bytes",
    "message.timestamp.after.max.ms": "log.message.timestamp.after.max.ms",
    "message.timestamp.before.max.ms": "log.message.timestamp.before.max.ms",
    "message.timestamp.type": "log.message.timestamp.type",
    "min.cleanable.dirty.ratio": "log.cleaner.min.cleanable.ratio",
    "min.compaction.lag.ms": "log.cleaner.min.compaction.lag.ms",
    "min.insync.replicas": "min.insync.replicas",
    "preallocate": "log.preallocate",
    "retention.bytes": "log.retention.bytes",
    "segment.bytes": "log.segment.bytes",
    "segment.index.bytes": "log.index.size.max.bytes",
    "unclean.leader.election.enable": "unclean.leader.election.enable",
}

_MINUTE_MS = 60_000
_HOUR_MS = 60 * _MINUTE_MS

# The broker settings that provide the default of each topic setting, in order of precedence. The
# factor converts the value to the unit of the topic setting; it is 1 if the value is not a number
# (Kafka: ServerTopicConfigSynonyms; KIP-226 for the order of sources).
TOPIC_SYNONYMS: dict[str, tuple[tuple[str, int], ...]] = {
    **{name: ((broker, 1),) for name, broker in OF_BROKER.items()},
    "flush.ms": (("log.flush.interval.ms", 1), ("log.flush.scheduler.interval.ms", 1)),
    "local.retention.bytes": (("log.local.retention.bytes", 1),),
    "local.retention.ms": (("log.local.retention.ms", 1),),
    "retention.ms": (
        ("log.retention.ms", 1),
        ("log.retention.minutes", _MINUTE_MS),
        ("log.retention.hours", _HOUR_MS),
    ),
    "segment.jitter.ms": (("log.roll.jitter.ms", 1), ("log.roll.jitter.hours", _HOUR_MS)),
    "segment.ms": (("log.roll.ms", 1), ("log.roll.hours", _HOUR_MS)),
}

# Two lines a row keep the table readable.
# fmt: off
OWN_SETTINGS: tuple[Setting, ...] = (
    Setting("errors.deadletterqueue.group.enable", BOOLEAN, False, None, CLUSTER_WIDE,
            "Whether share groups may write dead letters to the topic (KIP-1191).",
            differs="Kafka has it from 4.4 on."),
    Setting("flush.ms", LONG, LONG_MAX, at_least(0), CLUSTER_WIDE,
            "Time after which a partition is flushed to disk, in milliseconds."),
    Setting("follower.replication.throttled.replicas", LIST, (), THROTTLED_REPLICAS, CLUSTER_WIDE,
            "Replicas whose fetching is throttled, as partition:broker, or * for all."),
    Setting("internal.segment.bytes", INT, None, at_least(1), CLUSTER_WIDE,
            "Segment size for tests; may be below the least of segment.bytes.", internal=True),
    Setting("leader.replication.throttled.replicas", LIST, (), THROTTLED_REPLICAS, CLUSTER_WIDE,
            "Replicas whose serving is throttled, as partition:broker, or * for all."),
    Setting("local.retention.bytes", LONG, -2, at_least(-2), CLUSTER_WIDE,
            "Local share of tiered storage in bytes; there is no tiered storage here."),
    Setting("local.retention.ms", LONG, -2, at_least(-2), CLUSTER_WIDE,
            "Local share of tiered storage in milliseconds; there is no tiered storage here."),
    Setting("ottla.retention.by", STRING, "timestamp", one_of("timestamp", "append"), CLUSTER_WIDE,
            "What retention.ms counts from: the greatest timestamp of a segment's records, or the "
            "time at which the replica appended the last of them.",
            differs="Kafka has no such setting: it counts from the timestamps."),
    Setting("ottla.retention.hold.groups", LIST, (), None, CLUSTER_WIDE,
            "Groups for whom retention waits until they have committed what it would delete.",
            differs="Kafka has no such setting: retention deletes unread records, too."),
    Setting("ottla.retention.hold.max.bytes", LONG, 10 << 30, at_least(0), CLUSTER_WIDE,
            "Most bytes of a partition that are kept only for ottla.retention.hold.groups.",
            differs="Kafka has no such setting."),
    Setting("ottla.retention.hold.max.ms", LONG, 604_800_000, at_least(0), CLUSTER_WIDE,
            "Longest time that retention waits for ottla.retention.hold.groups, in milliseconds.",
            differs="Kafka has no such setting."),
    Setting("remote.log.copy.disable", BOOLEAN, False, None, CLUSTER_WIDE,
            "Whether tiered storage stops copying; there is no tiered storage here."),
    Setting("remote.log.delete.on.disable", BOOLEAN, False, None, CLUSTER_WIDE,
            "Whether switching tiered storage off deletes; there is no tiered storage here."),
    Setting("remote.storage.enable", BOOLEAN, False, None, CLUSTER_WIDE,
            "Whether old segments move to tiered storage; there is none here, so only false is "
            "taken.", use=Use.REFUSED),
    Setting("retention.ms", LONG, 604_800_000, at_least(-1), CLUSTER_WIDE,
            "Age at which closed segments are deleted, in milliseconds; -1 for never."),
    Setting("segment.jitter.ms", LONG, 0, at_least(0), CLUSTER_WIDE,
            "Largest random amount by which a segment is closed earlier, in milliseconds."),
    Setting("segment.ms", LONG, 604_800_000, at_least(1), CLUSTER_WIDE,
            "Age at which a segment is closed, in milliseconds."),
)
# fmt: on
