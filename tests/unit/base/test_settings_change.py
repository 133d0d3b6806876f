"""What may be changed while running, and what becomes of it (KIP-226, KIP-339)."""

import pytest

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.settings import TOPIC_SETTINGS, BrokerSettings
from ottla.base.settings.alter import Alteration, altered
from ottla.base.settings.check import (
    check_broker_configs,
    check_group_configs,
    check_topic_configs,
)

SET, DELETE, APPEND, SUBTRACT = 0, 1, 2, 3


def after(held, *alterations, inherited=None):
    return altered(
        held, [Alteration(*a) for a in alterations], TOPIC_SETTINGS, "topic", inherited or {}
    )


def refusal(function, *arguments, **named):
    with pytest.raises(OttlaError) as raised:
        function(*arguments, **named)
    return raised.value.code, raised.value.message


def test_set_and_delete_concern_the_named_settings_only():
    """The rest stays: that is what makes it incremental."""
    held = {"retention.ms": "1", "segment.ms": "2"}
    assert after(held, ("retention.ms", SET, "3")) == {"retention.ms": "3", "segment.ms": "2"}
    assert after(held, ("retention.ms", DELETE, None)) == {"segment.ms": "2"}
    assert held == {"retention.ms": "1", "segment.ms": "2"}


def test_deleting_what_nobody_set_is_no_error():
    """Kafka 4.3 accepts even a name it does not know."""
    assert after({}, ("retention.ms", DELETE, None), ("no.such", DELETE, None)) == {}


def test_append_adds_what_is_not_there_yet():
    """Lists hold each item once."""
    held = {"cleanup.policy": "delete"}
    assert after(held, ("cleanup.policy", APPEND, "compact,delete")) == {
        "cleanup.policy": "delete,compact"
    }


def test_append_starts_from_the_inherited_list():
    """The topic had it already, though not of its own."""
    inherited = {"cleanup.policy": "delete"}
    assert after({}, ("cleanup.policy", APPEND, "compact"), inherited=inherited) == {
        "cleanup.policy": "delete,compact"
    }


def test_subtract_takes_items_away():
    """What is not in the list is ignored."""
    held = {"cleanup.policy": "compact,delete"}
    assert after(held, ("cleanup.policy", SUBTRACT, "delete, other")) == {
        "cleanup.policy": "compact"
    }


def test_only_lists_are_appended_to():
    """Kafka's code for it is INVALID_CONFIG."""
    code, message = refusal(after, {}, ("retention.ms", APPEND, "1"))
    assert code is ErrorCode.INVALID_CONFIG
    assert "not LIST" in message


@pytest.mark.parametrize(
    "alterations",
    [
        [("retention.ms", SET, None)],
        [("retention.ms", 9, "1")],
        [("retention.ms", SET, "1"), ("retention.ms", DELETE, None)],
    ],
)
def test_a_senseless_change_is_an_invalid_request(alterations):
    """No value, no such operation, one name twice."""
    assert refusal(after, {}, *alterations)[0] is ErrorCode.INVALID_REQUEST


def test_a_topic_takes_what_the_table_allows():
    """An empty cleanup.policy keeps everything for ever (KIP-1161)."""
    configs = {"retention.ms": "-1", "cleanup.policy": "", "compression.type": "zstd"}
    check_topic_configs(configs, BrokerSettings())


@pytest.mark.parametrize(
    "configs",
    [
        {"retention.mss": "1"},
        {"retention.ms": "-2"},
        {"cleanup.policy": "shred"},
        {"compression.gzip.level": "0"},
        {"leader.replication.throttled.replicas": "1-2"},
        {"remote.storage.enable": "true"},
        {"min.compaction.lag.ms": "100", "max.compaction.lag.ms": "10"},
    ],
)
def test_a_topic_does_not_take(configs):
    """Unknown names, forbidden values, values that contradict each other."""
    code, message = refusal(check_topic_configs, configs, BrokerSettings())
    assert code is ErrorCode.INVALID_CONFIG
    assert next(iter(configs)) in message


def test_a_group_stays_within_the_brokers_bounds():
    """group.consumer.min.session.timeout.ms is 45 s by default."""
    settings = BrokerSettings()
    check_group_configs({"consumer.session.timeout.ms": "45000"}, settings)
    code, message = refusal(check_group_configs, {"consumer.session.timeout.ms": "44999"}, settings)
    assert code is ErrorCode.INVALID_CONFIG
    assert "group.consumer.min.session.timeout.ms = 45000" in message


def test_a_read_only_broker_setting_needs_a_restart():
    """And the message says so."""
    names = frozenset({"num.partitions"})
    code, message = refusal(check_broker_configs, {"num.partitions": "3"}, names, per_broker=True)
    assert code is ErrorCode.INVALID_REQUEST
    assert message.startswith("Cannot update these configs dynamically: num.partitions")


def test_a_per_broker_setting_is_not_set_for_all():
    """Listeners of one broker make no sense on another."""
    names = frozenset({"listeners"})
    configs = {"listeners": "PLAINTEXT://:1"}
    assert refusal(check_broker_configs, configs, names, per_broker=False)[0] is (
        ErrorCode.INVALID_REQUEST
    )
    check_broker_configs(configs, names, per_broker=True)


def test_what_was_stored_before_hinders_no_other_change():
    """Only the names that change are looked at."""
    held = {"num.partitions": "3", "message.max.bytes": "5"}
    check_broker_configs(held, frozenset({"message.max.bytes"}), per_broker=True)
