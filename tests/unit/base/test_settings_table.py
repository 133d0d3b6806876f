"""The tables of settings hold together, and say what they should of themselves."""

import re

import pytest

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.settings import BROKER_SETTINGS, GROUP_SETTINGS, TOPIC_SETTINGS
from ottla.base.settings.check import check_broker_configs
from ottla.base.settings.tables import (
    BROKER_SYNONYMS,
    FORMER_SETTINGS,
    GROUP_SYNONYMS,
    TOPIC_SYNONYMS,
    setting_named,
)
from ottla.base.settings.tables.setting import ConfigType, Setting, UpdateMode, Use
from ottla.base.settings.tables.validators import at_least, between

EVERY = [
    *BROKER_SETTINGS.values(),
    *TOPIC_SETTINGS.values(),
    *GROUP_SETTINGS.values(),
]


# What Kafka 4.3 does not have.
OURS = {
    "audit.log.dir",
    "audit.log.enable",
    "audit.log.file.bytes",
    "audit.log.logins.enable",
    "audit.log.retention.bytes",
    "audit.log.sink",
    "allow.everyone.if.no.acl.found",
    "connection.authentication.timeout.ms",
    "coordination.connect",
    "coordination.password",
    "coordination.sasl.mechanism",
    "coordination.user",
    "cores",
    "logger.format",
    "metrics.listen",
    "metrics.otlp.endpoint",
    "delegation.token.master.key",
    "canary.interval.ms",
    "delete.topic.trash.min.free.percent",
    "delete.topic.trash.ms",
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
    "super.users",
    *(name for name in BROKER_SETTINGS if name.startswith("zookeeper.")),
}
# Dead letters of share groups (KIP-1191), which Kafka has from 4.4 on.
LATER_OF_BROKERS = {
    "errors.deadletterqueue.auto.create.topics.enable",
    "errors.deadletterqueue.topic.name.prefix",
}
LATER_OF_TOPICS = {"errors.deadletterqueue.group.enable"}
LATER_OF_GROUPS = {
    "errors.deadletterqueue.copy.record.enable",
    "errors.deadletterqueue.topic.name",
}


def a_setting(kind, validator=None):
    return Setting("a.setting", kind, None, validator, UpdateMode.READ_ONLY, "What it does.")


def refusal_of(setting, text):
    with pytest.raises(OttlaError) as raised:
        setting.parse(text)
    assert raised.value.code is ErrorCode.INVALID_CONFIG
    return raised.value.message


@pytest.mark.parametrize("setting", EVERY, ids=lambda setting: setting.name)
def test_every_default_is_what_its_text_says(setting):
    """A default, printed and read again, is itself, and its own rule allows it."""
    if setting.default is not None:
        assert setting.parse(setting.text_of(setting.default)) == setting.default


@pytest.mark.parametrize("setting", EVERY, ids=lambda setting: setting.name)
def test_every_setting_is_explained_in_sentences(setting):
    """The documentation is generated from the table."""
    assert re.match(r"[A-Z_].*\.$", setting.doc)
    assert not setting.differs or setting.differs.endswith(".")


def test_the_tables_hold_kafkas_settings_and_few_of_our_own():
    """Counted in Kafka 4.3: 360 broker settings and 3 dynamic ones, 34 of topics, 17 of groups."""
    of_topics = {name for name in OURS if name.startswith("ottla.")}
    assert len(BROKER_SETTINGS.keys() - (OURS - of_topics) - LATER_OF_BROKERS) == 363
    assert len(TOPIC_SETTINGS.keys() - of_topics - LATER_OF_TOPICS) == 34
    assert len(GROUP_SETTINGS.keys() - LATER_OF_GROUPS) == 17
    assert (OURS - of_topics) | LATER_OF_BROKERS < BROKER_SETTINGS.keys()
    assert of_topics | LATER_OF_TOPICS < TOPIC_SETTINGS.keys()
    assert GROUP_SETTINGS.keys() > LATER_OF_GROUPS


def test_defaults_are_kafkas_where_nothing_else_is_said():
    """A sample of Kafka 4.3's defaults by hand."""
    expected = {
        "num.partitions": 1,
        "log.segment.bytes": 1_073_741_824,
        "log.retention.hours": 168,
        "message.max.bytes": 1_048_588,
        "socket.request.max.bytes": 104_857_600,
        "group.initial.rebalance.delay.ms": 3000,
        "offsets.topic.num.partitions": 50,
        "connections.max.idle.ms": 600_000,
        "auto.create.topics.enable": True,
        "compression.type": "producer",
        "log.cleanup.policy": ("delete",),
        "log.flush.interval.messages": 9_223_372_036_854_775_807,
        "producer.id.expiration.ms": 86_400_000,
        "transaction.max.timeout.ms": 900_000,
        "unclean.leader.election.enable": False,
    }
    assert {name: BROKER_SETTINGS[name].default for name in expected} == expected


def test_every_synonym_is_in_the_broker_table():
    """A topic's or group's setting falls back on settings there are."""
    named = [name for row in TOPIC_SYNONYMS.values() for name, _ in row]
    named += [name for row in GROUP_SYNONYMS.values() for name, _ in row]
    named += [name for row in BROKER_SYNONYMS.values() for name in row]
    assert set(named) <= BROKER_SETTINGS.keys()
    assert TOPIC_SYNONYMS.keys() <= TOPIC_SETTINGS.keys()
    assert GROUP_SYNONYMS.keys() <= GROUP_SETTINGS.keys()


def test_a_former_setting_is_in_no_table():
    """Else it would be described to clients."""
    assert not FORMER_SETTINGS.keys() & BROKER_SETTINGS.keys()


def test_only_passwords_are_sensitive():
    """Their values are never sent; everything else is shown."""
    hidden = {setting.name for setting in EVERY if setting.sensitive}
    assert "ssl.keystore.password" in hidden
    assert "sasl.jaas.config" in hidden
    assert "log.dirs" not in hidden


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (ConfigType.INT, " 7 ", 7),
        (ConfigType.LONG, "-1", -1),
        (ConfigType.BOOLEAN, "TRUE", True),
        (ConfigType.DOUBLE, "0.5", 0.5),
        (ConfigType.LIST, "a, b,,a", ("a", "b")),
        (ConfigType.LIST, "", ()),
        (ConfigType.STRING, " x ", "x"),
    ],
)
def test_a_text_becomes_a_typed_value(kind, text, value):
    """White space around it is no part of it; a list holds each item once."""
    assert a_setting(kind).parse(text) == value


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (ConfigType.INT, "1k"),
        (ConfigType.INT, "1_000"),
        (ConfigType.INT, "2147483648"),
        (ConfigType.SHORT, "32768"),
        (ConfigType.LONG, "9223372036854775808"),
        (ConfigType.BOOLEAN, "yes"),
        (ConfigType.DOUBLE, "half"),
        (ConfigType.DOUBLE, "nan"),
    ],
)
def test_a_text_of_the_wrong_type_is_refused(kind, text):
    """The message names the setting and the text."""
    message = refusal_of(a_setting(kind), text)
    assert "a.setting" in message
    assert text in message


def test_a_rule_refuses_what_lies_outside():
    """Bounds themselves are allowed."""
    bounded = a_setting(ConfigType.INT, between(1, 9))
    assert [bounded.parse("1"), bounded.parse("9")] == [1, 9]
    assert "between 1 and 9" in refusal_of(bounded, "10")
    assert "at least 0" in refusal_of(a_setting(ConfigType.INT, at_least(0)), "-1")


def test_the_value_of_a_password_is_not_repeated():
    """Messages end up in logs."""
    setting = a_setting(ConfigType.PASSWORD, at_least(0))
    refusing = setting._replace(
        validator=setting.validator._replace(complaint=lambda value: "too short")
    )
    assert "secret" not in refusal_of(refusing, "secret")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.5, "0.5"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
        (1e7, "1.0E7"),
        (12345678.5, "1.23456785E7"),
        (0.0005, "5.0E-4"),
        (-2e-5, "-2.0E-5"),
        (0.0, "0.0"),
    ],
)
def test_numbers_are_printed_as_java_prints_them(value, text):
    """So that descriptions from both brokers can be compared as text."""
    assert a_setting(ConfigType.DOUBLE).text_of(value) == text


def test_an_unknown_name_gets_the_nearest():
    """The error says what was probably meant."""
    with pytest.raises(OttlaError) as raised:
        setting_named(TOPIC_SETTINGS, "retention.msec", "topic")
    assert "Unknown topic config name: retention.msec" in raised.value.message
    assert "retention.ms" in raised.value.message


def test_what_would_be_wrong_to_ignore_is_refused_not_unused():
    """So is an authorizer of another name: one that is configured and not there opens the door."""
    assert BROKER_SETTINGS["remote.log.storage.system.enable"].use is Use.REFUSED
    authorizer = BROKER_SETTINGS["authorizer.class.name"]
    assert authorizer.parse("org.apache.kafka.metadata.authorizer.StandardAuthorizer")
    with pytest.raises(OttlaError, match="choose one of"):
        authorizer.parse("com.example.MyAuthorizer")
    with pytest.raises(OttlaError, match="write it as User:alice"):
        BROKER_SETTINGS["super.users"].parse("User:root;alice")


def test_a_message_repeats_no_more_than_it_can_carry():
    """A response's text has at most 32,767 bytes; someone else's text must not break it."""
    endless = "x" * 100_000
    assert len(refusal_of(a_setting(ConfigType.INT), endless)) < 400
    with pytest.raises(OttlaError) as raised:
        setting_named(TOPIC_SETTINGS, endless, "topic")
    assert len(raised.value.message) < 400


@pytest.mark.parametrize("name", ["sasl.jaas.config", "sasl.enabled.mechanisms"])
def test_how_clients_log_in_is_no_clients_to_change(name):
    """The message does not repeat the value; the store gets no password."""
    with pytest.raises(OttlaError) as raised:
        check_broker_configs({name: "secret"}, frozenset({name}), per_broker=True)
    assert "read when a broker starts" in raised.value.message
    assert "secret" not in raised.value.message
