"""Settings of single groups (KIP-848, KIP-932)."""

from ottla.base.settings.declaration.setting import BOOLEAN, CLUSTER_WIDE, INT, STRING, Setting
from ottla.base.settings.declaration.validators import at_least, offset_reset, one_of
from ottla.base.settings.tables.broker_foreign import STREAMS

# Two lines a row keep the table readable.
# fmt: off
GROUP_SETTINGS: tuple[Setting, ...] = (
    Setting("consumer.assignment.interval.ms", INT, 1000, at_least(0), CLUSTER_WIDE,
            "Time between two assignments of the group, in milliseconds."),
    Setting("consumer.heartbeat.interval.ms", INT, 5000, at_least(1), CLUSTER_WIDE,
            "Heartbeat interval of the members, in milliseconds."),
    Setting("consumer.session.timeout.ms", INT, 45_000, at_least(1), CLUSTER_WIDE,
            "Session timeout of the members, in milliseconds."),
    Setting("errors.deadletterqueue.copy.record.enable", BOOLEAN, False, None, CLUSTER_WIDE,
            "Whether dead letters hold key, value and headers of their records (KIP-1191).",
            differs="Kafka has it from 4.4 on."),
    Setting("errors.deadletterqueue.topic.name", STRING, "", None, CLUSTER_WIDE,
            "Where a share group's dead letters go; empty: nowhere (KIP-1191).",
            differs="Kafka has it from 4.4 on, and looks at the prefix later."),
    Setting("share.assignment.interval.ms", INT, 1000, at_least(0), CLUSTER_WIDE,
            "Time between two assignments of the group, in milliseconds; unused here."),
    Setting("share.auto.offset.reset", STRING, "latest", offset_reset(), CLUSTER_WIDE,
            "Where a share group begins: latest, earliest or by_duration:PT1H and the like."),
    Setting("share.delivery.count.limit", INT, 5, at_least(2), CLUSTER_WIDE,
            "How often a record is given to members at most."),
    Setting("share.heartbeat.interval.ms", INT, 5000, at_least(1), CLUSTER_WIDE,
            "Heartbeat interval of members of a share group, in milliseconds."),
    Setting("share.isolation.level", STRING, "read_uncommitted",
            one_of("read_committed", "read_uncommitted"), CLUSTER_WIDE,
            "Whether records of aborted transactions are given to members."),
    Setting("share.partition.max.record.locks", INT, 2000, at_least(100), CLUSTER_WIDE,
            "Records of a partition that may be under way."),
    Setting("share.record.lock.duration.ms", INT, 30_000, at_least(1000), CLUSTER_WIDE,
            "How long a record stays acquired by a member, in milliseconds."),
    Setting("share.renew.acknowledge.enable", BOOLEAN, True, None, CLUSTER_WIDE,
            "Whether members may renew their locks (KIP-1222)."),
    Setting("share.session.timeout.ms", INT, 45_000, at_least(1), CLUSTER_WIDE,
            "Session timeout of members of a share group, in milliseconds."),
    Setting("streams.assignment.interval.ms", INT, 1000, at_least(0), CLUSTER_WIDE, STREAMS),
    Setting("streams.heartbeat.interval.ms", INT, 5000, at_least(1), CLUSTER_WIDE, STREAMS),
    Setting("streams.initial.rebalance.delay.ms", INT, 3000, at_least(0), CLUSTER_WIDE, STREAMS),
    Setting("streams.num.standby.replicas", INT, 0, at_least(0), CLUSTER_WIDE, STREAMS),
    Setting("streams.session.timeout.ms", INT, 45_000, at_least(1), CLUSTER_WIDE, STREAMS),
)
# fmt: on
