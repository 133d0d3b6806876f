"""Values of settings with units on the command line."""

import pytest

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.settings.written_values import plain_value, with_unit


@pytest.mark.parametrize(
    ("name", "text", "plain"),
    [
        ("retention.ms", "1d", "86400000"),
        ("retention.ms", "-1", "-1"),
        ("retention.ms", " 604800000", " 604800000"),
        ("log.retention.hours", "1w", "168"),
        ("log.retention.minutes", "1h30m", "90"),
        ("segment.bytes", "64Mi", "67108864"),
        ("log.cleaner.dedupe.buffer.size", "128Mi", "134217728"),
        ("leader.replication.throttled.rate", "10MB/s", "10000000"),
        ("flush.messages", "10k", "10000"),
        ("consumer.session.timeout.ms", "45s", "45000"),
        # No whole numbers: a unit means nothing there.
        ("cleanup.policy", "1d", "1d"),
        ("min.cleanable.dirty.ratio", "0.5", "0.5"),
        # A name that no table has is the broker's to refuse.
        ("retention.sm", "1d", "1d"),
    ],
)
def test_a_unit_becomes_the_number_that_kafka_counts_in(name: str, text: str, plain: str) -> None:
    """Spans and sizes become plain numbers; everything else stays as it was typed."""
    assert plain_value(name, text) == plain


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("retention.ms", "1x", "write a whole number, or a span such as 500ms, 10m or 7d"),
        ("retention.ms", "1Mi", "or a span such as"),
        ("log.retention.hours", "90m", "it counts whole hours"),
        ("segment.bytes", "1d", "write a whole number, such as 500000, 500k or 512Mi"),
        ("num.partitions", "1.5", "write a whole number"),
        ("segment.bytes", "", "write a whole number"),
    ],
)
def test_a_unit_that_does_not_fit_is_refused_with_one_that_does(
    name: str, text: str, said: str
) -> None:
    """The message says which units the setting takes."""
    with pytest.raises(OttlaError) as refused:
        plain_value(name, text)
    assert refused.value.code is ErrorCode.INVALID_CONFIG
    assert f"Invalid value {text} for configuration {name}" in refused.value.message
    assert said in refused.value.message


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("retention.ms", "604800000", "7d"),
        ("retention.ms", "5400000", "1h30m"),
        ("retention.ms", "90061001", "90061001"),
        ("retention.ms", "-1", "-1"),
        ("retention.ms", "0", "0"),
        ("flush.ms", "9223372036854775807", "9223372036854775807"),
        ("log.retention.hours", "168", "7d"),
        ("segment.bytes", "1073741824", "1Gi"),
        ("segment.bytes", "14", "14"),
        ("max.message.bytes", "1048588", "1048588"),
        ("flush.messages", "1024", "1024"),
        ("cleanup.policy", "compact", "compact"),
        ("of.nobody.ms", "1000", "1000"),
    ],
)
def test_a_setting_is_shown_as_it_may_be_written(name: str, value: str, shown: str) -> None:
    """And what is shown means the same number."""
    assert with_unit(name, value) == shown
    assert plain_value(name, shown) == value
