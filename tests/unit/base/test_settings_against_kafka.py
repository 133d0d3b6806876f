"""Our tables against the facts of Kafka 4.3.1's own (its ConfigDef objects, written to a file)."""

from pathlib import Path

import pytest

from ottla.base.settings import BROKER_SETTINGS, GROUP_SETTINGS, TOPIC_SETTINGS

TABLES = {"broker": BROKER_SETTINGS, "topic": TOPIC_SETTINGS, "group": GROUP_SETTINGS}
FACTS = [
    line.split("\t")
    for line in Path(__file__).with_name("kafka_settings.tsv").read_text().splitlines()
    if not line.startswith("#")
]
# Defaults of ours that are not Kafka's; each row of the table says why.
OTHER_DEFAULTS = {
    "broker.session.timeout.ms",
    "controller.listener.names",
    "group.share.persister.class.name",
    "log.dir",
    "metric.reporters",
    "node.id",
    "principal.builder.class",
    "process.roles",
    "remote.log.metadata.manager.class.name",
    "sasl.oauthbearer.jwt.retriever.class",
    "sasl.oauthbearer.jwt.validator.class",
}


# What Kafka 4.3 does not have.
OURS = {
    "allow.everyone.if.no.acl.found",
    "audit.log.dir",
    "audit.log.enable",
    "audit.log.file.bytes",
    "audit.log.logins.enable",
    "audit.log.retention.bytes",
    "audit.log.sink",
    "connection.authentication.timeout.ms",
    "coordination.connect",
    "coordination.password",
    "coordination.sasl.mechanism",
    "coordination.user",
    "cores",
    "canary.interval.ms",
    "delete.topic.trash.min.free.percent",
    "delete.topic.trash.ms",
    "logger.format",
    "metrics.listen",
    "metrics.otlp.endpoint",
    "errors.deadletterqueue.auto.create.topics.enable",
    "errors.deadletterqueue.copy.record.enable",
    "errors.deadletterqueue.group.enable",
    "errors.deadletterqueue.topic.name",
    "errors.deadletterqueue.topic.name.prefix",
    "group.max.count",
    "leader.imbalance.per.broker.percentage",
    "log.flush.journal.min.logs",
    "log.flush.policy",
    "log.scrub.interval.ms",
    "log.scrub.max.bytes.per.second",
    "max.connections.per.user",
    "max.connections.per.user.overrides",
    "max.failed.authentication.rate",
    "ottla.retention.by",
    "ottla.retention.hold.groups",
    "ottla.retention.hold.max.bytes",
    "ottla.retention.hold.max.ms",
    "sasl.oauthbearer.allowed.urls",
    "sasl.plain.without.tls.enable",
    "delegation.token.master.key",
    "super.users",
    "zookeeper.set.acl",
    "zookeeper.ssl.cipher.suites",
    "zookeeper.ssl.client.enable",
    "zookeeper.ssl.enabled.protocols",
    "zookeeper.ssl.endpoint.identification.algorithm",
    "zookeeper.ssl.keystore.location",
    "zookeeper.ssl.keystore.password",
    "zookeeper.ssl.keystore.type",
    "zookeeper.ssl.truststore.location",
    "zookeeper.ssl.truststore.password",
    "zookeeper.ssl.truststore.type",
}


def text_of_default(setting):
    if setting.default is None:
        return "-"
    return setting.text_of(setting.default) or '""'


@pytest.mark.parametrize("fact", FACTS, ids=lambda fact: f"{fact[0]}-{fact[1]}")
def test_a_setting_is_what_kafka_says_it_is(fact):
    """Type, default, update mode, and whether clients are told of it."""
    kind, name, type_name, default, mode, shown = fact
    setting = TABLES[kind][name]
    assert setting.type.name == type_name
    assert setting.update.value == mode
    assert setting.internal == (shown == "internal")
    if name in OTHER_DEFAULTS:
        assert text_of_default(setting) != default
        assert setting.differs
    else:
        assert text_of_default(setting) == default


def test_nothing_is_ours_but_what_says_so():
    """A setting that Kafka does not know explains itself as a difference."""
    known = {(kind, name) for kind, name, *_ in FACTS}
    ours = {
        name
        for kind, table in TABLES.items()
        for name, setting in table.items()
        if (kind, name) not in known and setting.differs
    }
    unknown = {n for k, table in TABLES.items() for n in table if (k, n) not in known}
    assert ours == unknown == OURS
