"""Which settings were set by an operator."""

from ottla.client.admin.configs import ConfigEntry, ConfigSource
from ottla.diagnosis.settings import set_by_operator

MIN_ISR = "min.insync.replicas"
DYNAMIC = ConfigSource.DYNAMIC_DEFAULT_BROKER


def entry(
    name: str, source: ConfigSource, value: str = "1", default: str | None = None
) -> ConfigEntry:
    synonyms = () if default is None else ((name, default, ConfigSource.DEFAULT),)
    return ConfigEntry(name, value, source, False, False, synonyms)


def names(*entries: ConfigEntry) -> list[str]:
    return [one.name for one in set_by_operator({each.name: each for each in entries})]


def test_defaults_are_left_out() -> None:
    """So are values of which an older broker does not say the source."""
    assert names(
        entry("segment.ms", ConfigSource.TOPIC),
        entry("retention.ms", ConfigSource.STATIC_BROKER),
        entry("cleanup.policy", ConfigSource.DEFAULT),
        entry("flush.ms", ConfigSource.UNKNOWN),
    ) == ["retention.ms", "segment.ms"]


def test_the_least_isr_that_the_first_broker_stored_is_none_of_an_operator() -> None:
    """Every cluster has it stored; another value than the default was set by a person."""
    assert names(entry(MIN_ISR, DYNAMIC, "1", default="1")) == []
    assert names(entry(MIN_ISR, DYNAMIC, "2", default="1")) == [MIN_ISR]
    assert names(entry("log.retention.ms", DYNAMIC, "1", default="1")) == ["log.retention.ms"]
