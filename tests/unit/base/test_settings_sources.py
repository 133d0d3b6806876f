"""Which source a value comes from: topic, broker, all brokers, the file, the default (KIP-226)."""

import pytest

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.settings import BrokerSettings, ConfigSource, topic_value
from ottla.base.settings.resolve import broker_value, group_value


def told(resolved):
    return [(s.name, s.text, s.source.name) for s in resolved.synonyms]


def refusal_of(static):
    with pytest.raises(OttlaError) as raised:
        BrokerSettings(static)
    assert raised.value.code is ErrorCode.INVALID_CONFIG
    return raised.value.message


def test_unset_settings_have_their_defaults():
    """Typed, without parsing."""
    settings = BrokerSettings()
    assert settings.integer("num.partitions") == 1
    assert settings.flag("delete.topic.enable") is True
    assert settings.text("log.flush.policy") == "group"
    assert settings.texts("log.cleanup.policy") == ("delete",)
    assert settings.number("log.cleaner.io.buffer.load.factor") == 0.9
    assert settings.value("broker.rack") is None


def test_an_unknown_name_in_the_file_is_refused_with_the_nearest():
    """A misspelt setting must not be silently without effect."""
    message = refusal_of({"log.retention.hour": "1"})
    assert "log.retention.hour;" in message
    assert "log.retention.hours" in message


def test_a_setting_of_an_older_kafka_is_accepted_with_a_note():
    """A file that ran Kafka 3 starts Ottla."""
    settings = BrokerSettings({"zookeeper.connect": "localhost:2181"})
    assert len(settings.notes) == 1
    assert settings.notes[0].startswith("zookeeper.connect is accepted and changes nothing")


def test_a_setting_of_parts_that_are_not_there_is_accepted_with_a_note():
    """KRaft's settings stand in every server.properties."""
    settings = BrokerSettings({"controller.quorum.voters": "1@localhost:9093"})
    assert "controller.quorum.voters" in settings.notes[0]


def test_a_setting_that_must_not_be_ignored_is_refused():
    """Who configures an authorizer believes that it authorizes."""
    assert "authorizer.class.name" in refusal_of({"authorizer.class.name": "a.B"})


def test_a_refused_setting_may_say_what_is_so_anyway():
    """Switching off what is not there is fine."""
    BrokerSettings({"remote.log.storage.system.enable": "false", "authorizer.class.name": ""})


def test_a_value_its_rule_forbids_is_refused():
    """At start, not when it is first used."""
    assert "num.partitions" in refusal_of({"num.partitions": "0"})


def test_the_older_name_of_the_broker_id_counts_where_it_alone_is_set():
    """node.id took over from broker.id with KRaft."""
    assert BrokerSettings().broker_id == 0
    assert BrokerSettings({"broker.id": "4"}).broker_id == 4
    assert BrokerSettings({"broker.id": "4", "node.id": "5"}).broker_id == 5


def test_log_dirs_win_over_log_dir():
    """As in Kafka."""
    assert BrokerSettings({"log.dir": "/a"}).log_dirs == ("/a",)
    assert BrokerSettings({"log.dir": "/a", "log.dirs": "/b,/c"}).log_dirs == ("/b", "/c")


def test_a_topic_without_settings_has_the_default():
    """One synonym, the broker's setting behind it."""
    resolved = topic_value("segment.bytes", {}, BrokerSettings())
    assert (resolved.value, resolved.source) == (1 << 30, ConfigSource.DEFAULT_CONFIG)
    assert told(resolved) == [("log.segment.bytes", "1073741824", "DEFAULT_CONFIG")]


def test_every_source_is_told_strongest_first():
    """The topic, this broker, all brokers, the file, the default."""
    settings = BrokerSettings({"log.segment.bytes": "2000000"})
    settings.set_dynamic({"log.segment.bytes": "3000000"}, {"log.segment.bytes": "4000000"})
    resolved = topic_value("segment.bytes", {"segment.bytes": "5000000"}, settings)
    assert resolved.value == 5_000_000
    assert told(resolved) == [
        ("segment.bytes", "5000000", "DYNAMIC_TOPIC_CONFIG"),
        ("log.segment.bytes", "4000000", "DYNAMIC_BROKER_CONFIG"),
        ("log.segment.bytes", "3000000", "DYNAMIC_DEFAULT_BROKER_CONFIG"),
        ("log.segment.bytes", "2000000", "STATIC_BROKER_CONFIG"),
        ("log.segment.bytes", "1073741824", "DEFAULT_CONFIG"),
    ]


def test_the_finer_unit_wins_over_the_coarser():
    """log.retention.ms, then minutes, then hours, each turned into milliseconds."""
    hours = BrokerSettings({"log.retention.hours": "2"})
    assert topic_value("retention.ms", {}, hours).value == 7_200_000
    minutes = BrokerSettings({"log.retention.hours": "2", "log.retention.minutes": "3"})
    assert topic_value("retention.ms", {}, minutes).value == 180_000
    exact = BrokerSettings({"log.retention.minutes": "3", "log.retention.ms": "4"})
    assert topic_value("retention.ms", {}, exact).value == 4


def test_no_retention_by_time_is_minus_one_in_every_unit():
    """-1 hour is not -3,600,000 ms."""
    for name in ("log.retention.ms", "log.retention.minutes", "log.retention.hours"):
        assert topic_value("retention.ms", {}, BrokerSettings({name: "-1"})).value == -1


def test_a_coarser_setting_of_the_file_is_told_as_the_source():
    """It is why the value is what it is; Kafka 4.3 says DEFAULT_CONFIG here."""
    resolved = topic_value("segment.ms", {}, BrokerSettings({"log.roll.hours": "7"}))
    assert (resolved.value, resolved.source) == (25_200_000, ConfigSource.STATIC_BROKER_CONFIG)


def test_a_coarser_default_is_not_told():
    """As Kafka 4.3 answers for retention.ms, segment.ms, segment.jitter.ms and flush.ms."""
    for name in ("retention.ms", "segment.ms", "segment.jitter.ms", "flush.ms"):
        assert topic_value(name, {}, BrokerSettings()).synonyms == ()


def test_a_broker_setting_is_told_under_its_own_name():
    """log.retention.ms does not stand in the description of log.retention.hours (Kafka 4.3)."""
    settings = BrokerSettings({"log.retention.hours": "5"})
    settings.set_dynamic({}, {"log.retention.ms": "5000"})
    assert told(broker_value("log.retention.hours", settings)) == [
        ("log.retention.hours", "5", "STATIC_BROKER_CONFIG"),
        ("log.retention.hours", "168", "DEFAULT_CONFIG"),
    ]
    assert told(broker_value("log.retention.minutes", settings)) == []


def test_a_password_is_never_told():
    """Neither as a value nor as a synonym."""
    settings = BrokerSettings({"ssl.keystore.password": "secret"})
    assert told(broker_value("ssl.keystore.password", settings)) == [
        ("ssl.keystore.password", None, "STATIC_BROKER_CONFIG")
    ]


def test_a_group_falls_back_on_the_brokers_setting():
    """KIP-1043's group settings."""
    settings = BrokerSettings({"group.consumer.session.timeout.ms": "50000"})
    assert group_value("consumer.session.timeout.ms", {}, settings).value == 50_000
    own = group_value(
        "consumer.session.timeout.ms", {"consumer.session.timeout.ms": "60000"}, settings
    )
    assert (own.value, own.source) == (60_000, ConfigSource.DYNAMIC_GROUP_CONFIG)


def test_a_dynamic_change_is_in_effect_at_once_and_told():
    """Whoever subscribed learns the names that changed."""
    settings = BrokerSettings({"message.max.bytes": "5"})
    heard = []
    settings.subscribe(heard.append)
    changed = settings.set_dynamic({"message.max.bytes": "6"}, {"log.cleaner.threads": "2"})
    assert settings.integer("message.max.bytes") == 6
    assert heard == [changed] == [{"message.max.bytes", "log.cleaner.threads"}]


def test_taking_a_dynamic_change_back_restores_the_file():
    """The file's value was only covered."""
    settings = BrokerSettings({"message.max.bytes": "5"})
    settings.set_dynamic({"message.max.bytes": "6"}, {})
    assert settings.set_dynamic({}, {}) == {"message.max.bytes"}
    assert settings.integer("message.max.bytes") == 5


def test_setting_what_is_so_already_changes_nothing():
    """Nobody is told."""
    settings = BrokerSettings()
    heard = []
    settings.subscribe(heard.append)
    assert settings.set_dynamic({"message.max.bytes": "1048588"}, {}) == frozenset()
    assert heard == []


def test_a_stored_change_that_cannot_be_is_skipped_with_a_note():
    """A broker starts although the store holds what a newer one wrote."""
    settings = BrokerSettings()
    settings.set_dynamic({"num.partitions": "9", "message.max.bytes": "many"}, {})
    assert settings.integer("num.partitions") == 1
    assert settings.integer("message.max.bytes") == 1_048_588
    assert "many" in settings.notes[0]
