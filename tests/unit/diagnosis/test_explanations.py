"""What a setting does, from the tables."""

import pytest

from ottla.base.errors import OttlaError
from ottla.diagnosis.settings import Explanation, explanations, settings_with


def test_a_setting_is_explained_for_each_kind_that_has_it() -> None:
    """Its default in words beside the number, and what gives its value otherwise."""
    assert explanations("retention.ms") == [
        Explanation(
            name="retention.ms",
            kind="topic",
            doc="Age at which closed segments are deleted, in milliseconds; -1 for never.",
            type="long",
            default="604800000",
            default_words="604800000 (7 days)",
            rule="[-1,...]",
            change="while running, for one topic",
            synonyms=(
                "broker's log.retention.ms",
                "broker's log.retention.minutes",
                "broker's log.retention.hours",
            ),
        )
    ]
    assert [one.kind for one in explanations("min.insync.replicas")] == ["topic", "broker"]
    assert explanations("retentoin.ms") == []


@pytest.mark.parametrize(
    ("name", "default", "words"),
    [
        ("segment.bytes", "1073741824", "1073741824 (1.0 GiB)"),
        ("flush.messages", "9223372036854775807", "9223372036854775807 (never)"),
        ("min.cleanable.dirty.ratio", "0.5", "0.5"),
    ],
)
def test_long_defaults_are_said_in_words_too(name: str, default: str, words: str) -> None:
    """Sizes, spans, and the greatest number as never."""
    found = explanations(name)[0]
    assert (found.default, found.default_words) == (default, words)


def test_a_setting_of_earlier_versions_changes_nothing() -> None:
    """A broker takes it from an old file all the same."""
    (former,) = explanations("zookeeper.connect")
    assert former.doc.startswith("A setting of earlier versions of Kafka. ")
    assert former.use == "accepted, and changes nothing"


def test_a_part_of_a_name_finds_all_that_have_it() -> None:
    """What no name contains is answered with the nearest name."""
    found = {(one.kind, one.name) for one in settings_with("retention.ms")}
    assert {("topic", "retention.ms"), ("broker", "log.retention.ms")} <= found
    with pytest.raises(OttlaError, match=r"did you mean retention\.ms"):
        settings_with("retentoin.ms")
