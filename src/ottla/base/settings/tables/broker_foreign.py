"""Kafka's present and former settings for features that Ottla lacks. Accepted, with a note."""

from collections.abc import Iterable, Iterator
from typing import TypeAlias

from ottla.base.settings.tables.setting import (
    BOOLEAN,
    CLASS,
    CLUSTER_WIDE,
    DOUBLE,
    INT,
    INT_MAX,
    LIST,
    LONG,
    LONG_MAX,
    READ_ONLY,
    STRING,
    ConfigType,
    Setting,
    UpdateMode,
    Use,
    Validator,
    Value,
)
from ottla.base.settings.tables.validators import at_least, between, list_of

TIERED = "Tiered storage of Kafka's; Ottla keeps all segments in its own folders."
STREAMS = "Streams groups of Kafka's; Ottla does not offer them."
KRAFT = "Kafka's own controller quorum; Ottla has no such quorum and needs nothing set."
FOREIGN = "Known to Kafka only; it changes nothing here."

Row: TypeAlias = tuple[str, ConfigType, Value, Validator | None]


def unused(
    doc: str, update: UpdateMode, *, rows: Iterable[Row], internal: bool = False
) -> Iterator[Setting]:
    """Yield the settings of a part that Ottla does not have.

    `rows` are name, type, default and validator.
    """
    for name, kind, default, validator in rows:
        yield Setting(
            name, kind, default, validator, update, doc, use=Use.UNUSED, internal=internal
        )


# Two lines a row keep the table readable.
# fmt: off
FOREIGN_SETTINGS: tuple[Setting, ...] = (
    Setting("alter.config.policy.class.name", CLASS, None, None, READ_ONLY,
            "A Java class that checks changed settings; Ottla loads none, and every change would "
            "pass unchecked.", use=Use.REFUSED),
    Setting("client.quota.callback.class", CLASS, None, None, READ_ONLY,
            "A Java class that decides on quotas; Ottla loads none, and clients would have others.",
            use=Use.REFUSED),
    Setting("config.providers", LIST, (), None, CLUSTER_WIDE,
            "Java classes that fill in values such as ${file:…}; Ottla loads none, and would take "
            "the text itself for the value.", use=Use.REFUSED),
    Setting("controller.listener.names", LIST, (), None, READ_ONLY,
            KRAFT,
            differs="Kafka has no default. There are no such listeners here.", use=Use.UNUSED),
    Setting("create.topic.policy.class.name", CLASS, None, None, READ_ONLY,
            "A Java class that checks new topics; Ottla loads none, and every topic would pass "
            "unchecked.", use=Use.REFUSED),
    Setting("metric.reporters", LIST, (), None, CLUSTER_WIDE,
            FOREIGN,
            differs="Kafka names its JMX reporter.", use=Use.UNUSED),
    Setting("process.roles", LIST, ("broker",), list_of("broker", "controller"), READ_ONLY,
            KRAFT,
            differs="Kafka has no default. Roles are not configured here.", use=Use.UNUSED),
    Setting("remote.log.metadata.manager.class.name", STRING, None, None, READ_ONLY,
            TIERED,
            differs="Kafka names its own class.", use=Use.UNUSED),
    Setting("remote.log.storage.system.enable", BOOLEAN, False, None, READ_ONLY,
            "Moves old segments to tiered storage, which Ottla does not have: all stay on disk.",
            use=Use.REFUSED),
    *unused(KRAFT, READ_ONLY, internal=True, rows=(
        ("controller.performance.always.log.threshold.ms", LONG, 2000, at_least(0)),
        ("controller.performance.sample.period.ms", LONG, 60_000, at_least(100)),
        ("internal.metadata.delete.delay.millis", LONG, 60_000, None),
        ("internal.metadata.log.segment.bytes", INT, None, None),
        ("internal.metadata.max.batch.size.in.bytes", INT, 1 << 23, None),
        ("server.max.startup.time.ms", LONG, LONG_MAX, at_least(0)),
        ("unclean.leader.election.interval.ms", LONG, 300_000, at_least(1)),
    )),
    *unused(KRAFT, READ_ONLY, rows=(
        ("controller.quorum.append.linger.ms", INT, 25, at_least(0)),
        ("controller.quorum.auto.join.enable", BOOLEAN, False, None),
        ("controller.quorum.bootstrap.servers", LIST, (), None),
        ("controller.quorum.election.backoff.max.ms", INT, 1000, at_least(0)),
        ("controller.quorum.election.timeout.ms", INT, 1000, at_least(0)),
        ("controller.quorum.fetch.max.bytes", INT, 1 << 20, at_least(1)),
        ("controller.quorum.fetch.snapshot.max.bytes", INT, 1 << 20, at_least(1)),
        ("controller.quorum.fetch.timeout.ms", INT, 2000, at_least(0)),
        ("controller.quorum.request.timeout.ms", INT, 2000, at_least(0)),
        ("controller.quorum.retry.backoff.ms", INT, 20, at_least(0)),
        ("controller.quorum.voters", LIST, (), None),
        ("controller.socket.timeout.ms", INT, 30_000, None),
        ("initial.broker.registration.timeout.ms", INT, 60_000, None),
        ("metadata.log.dir", STRING, None, None),
        ("metadata.log.max.record.bytes.between.snapshots", LONG, 20_971_520, at_least(1)),
        ("metadata.log.max.snapshot.interval.ms", LONG, 3_600_000, at_least(0)),
        ("metadata.log.segment.bytes", INT, 1 << 30, at_least(8_388_608)),
        ("metadata.log.segment.ms", LONG, 604_800_000, None),
        ("metadata.max.idle.interval.ms", INT, 500, at_least(0)),
        ("metadata.max.retention.bytes", LONG, 104_857_600, None),
        ("metadata.max.retention.ms", LONG, 604_800_000, None),
    )),
    *unused(TIERED, CLUSTER_WIDE, rows=(
        ("follower.fetch.last.tiered.offset.enable", BOOLEAN, False, None),
        ("log.local.retention.bytes", LONG, -2, at_least(-2)),
        ("log.local.retention.ms", LONG, -2, at_least(-2)),
        ("remote.fetch.max.wait.ms", INT, 500, at_least(1)),
        ("remote.list.offsets.request.timeout.ms", LONG, 30_000, at_least(1)),
        ("remote.log.index.file.cache.total.size.bytes", LONG, 1 << 30, at_least(1)),
        ("remote.log.manager.copier.thread.pool.size", INT, 10, at_least(1)),
        ("remote.log.manager.copy.max.bytes.per.second", LONG, LONG_MAX, at_least(1)),
        ("remote.log.manager.expiration.thread.pool.size", INT, 10, at_least(1)),
        ("remote.log.manager.fetch.max.bytes.per.second", LONG, LONG_MAX, at_least(1)),
        ("remote.log.manager.follower.thread.pool.size", INT, 2, at_least(1)),
        ("remote.log.reader.threads", INT, 10, at_least(1)),
    )),
    *unused(STREAMS, CLUSTER_WIDE, rows=(
        ("group.streams.assignment.interval.ms", INT, 1000, at_least(0)),
    )),
    *unused(STREAMS, READ_ONLY, rows=(
        ("group.streams.heartbeat.interval.ms", INT, 5000, at_least(1)),
        ("group.streams.initial.rebalance.delay.ms", INT, 3000, at_least(0)),
        ("group.streams.max.assignment.interval.ms", INT, 15_000, at_least(0)),
        ("group.streams.max.heartbeat.interval.ms", INT, 15_000, at_least(1)),
        ("group.streams.max.session.timeout.ms", INT, 60_000, at_least(1)),
        ("group.streams.max.size", INT, INT_MAX, at_least(1)),
        ("group.streams.max.standby.replicas", INT, 2, at_least(0)),
        ("group.streams.min.assignment.interval.ms", INT, 0, at_least(0)),
        ("group.streams.min.heartbeat.interval.ms", INT, 5000, at_least(1)),
        ("group.streams.min.session.timeout.ms", INT, 45_000, at_least(1)),
        ("group.streams.num.standby.replicas", INT, 0, at_least(0)),
        ("group.streams.session.timeout.ms", INT, 45_000, at_least(1)),
    )),
    *unused(FOREIGN, READ_ONLY, rows=(
        ("kafka.metrics.polling.interval.secs", INT, 10, at_least(1)),
        ("kafka.metrics.reporters", LIST, (), None),
        ("telemetry.max.bytes", INT, 1 << 20, at_least(1)),
    )),
    *unused(TIERED, READ_ONLY, internal=True, rows=(
        ("remote.log.index.file.cache.ttl.ms", LONG, 900_000, at_least(-1)),
        ("remote.log.manager.task.retry.backoff.max.ms", LONG, 30_000, at_least(1)),
        ("remote.log.manager.task.retry.backoff.ms", LONG, 500, at_least(1)),
        ("remote.log.manager.task.retry.jitter", DOUBLE, 0.2, between(0, 0.5)),
    )),
    *unused(TIERED, READ_ONLY, rows=(
        ("remote.log.manager.copy.quota.window.num", INT, 11, at_least(1)),
        ("remote.log.manager.copy.quota.window.size.seconds", INT, 1, at_least(1)),
        ("remote.log.manager.fetch.quota.window.num", INT, 11, at_least(1)),
        ("remote.log.manager.fetch.quota.window.size.seconds", INT, 1, at_least(1)),
        ("remote.log.manager.task.interval.ms", LONG, 30_000, at_least(1)),
        ("remote.log.manager.thread.pool.size", INT, 2, at_least(1)),
        ("remote.log.metadata.custom.metadata.max.bytes", INT, 128, at_least(0)),
        ("remote.log.metadata.manager.class.path", STRING, None, None),
        ("remote.log.metadata.manager.impl.prefix", STRING, "rlmm.config.", None),
        ("remote.log.metadata.manager.listener.name", STRING, None, None),
        ("remote.log.reader.max.pending.tasks", INT, 100, at_least(1)),
        ("remote.log.storage.manager.class.name", STRING, None, None),
        ("remote.log.storage.manager.class.path", STRING, None, None),
        ("remote.log.storage.manager.impl.prefix", STRING, "rsm.config.", None),
    )),
    *unused(FOREIGN, READ_ONLY, internal=True, rows=(
        ("unstable.api.versions.enable", BOOLEAN, False, None),
        ("unstable.feature.versions.enable", BOOLEAN, False, None),
    )),
)
# fmt: on

# Settings of earlier versions of Kafka. Accepted with a note, as Kafka 4 does; never described.
_ZOOKEEPER = "Kafka's use of ZooKeeper ended with 4.0."
_FORMAT = "There is one record format, batch v2, since Kafka 4.0."

FORMER_SETTINGS: dict[str, str] = {
    "advertised.host.name": "Use advertised.listeners.",
    "advertised.port": "Use advertised.listeners.",
    "broker.id.generation.enable": "Set node.id.",
    "control.plane.listener.name": "There is no separate control listener.",
    "controlled.shutdown.max.retries": "A stopping broker asks once.",
    "controlled.shutdown.retry.backoff.ms": "A stopping broker asks once.",
    "controller.quota.callback.class": "Quotas are not pluggable.",
    "group.coordinator.new.enable": "There is one group coordinator.",
    "host.name": "Use listeners.",
    "inter.broker.protocol.version": "Brokers agree on versions by themselves.",
    "kafka.metrics.config.dir": "Kafka's metrics reporters are Java classes.",
    "log.message.downconversion.enable": _FORMAT,
    "log.message.format.version": _FORMAT,
    "log.message.timestamp.difference.max.ms": (
        "Use log.message.timestamp.before.max.ms and log.message.timestamp.after.max.ms."
    ),
    "password.encoder.cipher.algorithm": _ZOOKEEPER,
    "password.encoder.iterations": _ZOOKEEPER,
    "password.encoder.key.length": _ZOOKEEPER,
    "password.encoder.keyfactory.algorithm": _ZOOKEEPER,
    "password.encoder.old.secret": _ZOOKEEPER,
    "password.encoder.secret": _ZOOKEEPER,
    "port": "Use listeners.",
    "quota.consumer.default": "Set quotas with kafka-configs.",
    "quota.producer.default": "Set quotas with kafka-configs.",
    "replica.high.watermark.checkpoint.interval": "Use the name that ends in .ms.",
    "reserved.broker.max.id": "Set node.id.",
    "zookeeper.clientCnxnSocket": "zookeeper.ssl.client.enable is enough.",
    "zookeeper.connect": _ZOOKEEPER,
    "zookeeper.connection.timeout.ms": _ZOOKEEPER,
    "zookeeper.max.in.flight.requests": _ZOOKEEPER,
    "zookeeper.metadata.migration.enable": _ZOOKEEPER,
    "zookeeper.session.timeout.ms": _ZOOKEEPER,
    "zookeeper.ssl.crl.enable": "Certificates are not looked up in lists of revoked ones.",
    "zookeeper.ssl.ocsp.enable": "Certificates are not looked up in lists of revoked ones.",
    "zookeeper.ssl.protocol": "Use zookeeper.ssl.enabled.protocols.",
    "zookeeper.sync.time.ms": _ZOOKEEPER,
}
