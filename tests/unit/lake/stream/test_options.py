"""The data source's options: what they mean, and what is said of wrong ones."""

import pytest

from ottla.base.errors import OttlaError
from ottla.lake.plan import Boundary
from ottla.lake.stream.options import OPTIONS, SourceOptions, parse_options
from ottla.lake.stream.topics import boundaries, chosen


def test_defaults() -> None:
    found = parse_options({"topic": "t"})
    assert (found.topic, found.start, found.end) == ("t", "earliest", "latest")
    assert found.fail_on_data_loss
    assert found.delay_max_ms == 900_000
    assert found.offsets_per_task is None


def test_each_option_has_its_field() -> None:
    assert [option.field for option in OPTIONS] == list(SourceOptions.__slots__)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({}, "which topic"),
        ({"topic": "a", "topics": "b"}, "which topic"),
        ({"topics": " , "}, "which topic"),
        ({"topic": "a", "maxBytesPerTrigger": "0"}, "not a size such as 500k"),
        ({"topic": "a", "maxTriggerDelay": "soon"}, "not a span such as 500ms"),
        ({"topic": "a", "failOnDataLoss": "no"}, "not true or false"),
        ({"topic": "a", "onBadTimestamp": "skip"}, "not fail or null"),
        ({"topic": "a", "end": "last-load"}, "last-load of which table"),
    ],
)
def test_wrong_ones_are_refused(options: dict[str, str], told: str) -> None:
    with pytest.raises(OttlaError, match=told):
        parse_options(options)


def test_topics_by_list_and_by_pattern() -> None:
    """A pattern has to match the whole name."""
    names = ["flights", "flights-2", "old-flights", "weather"]
    by_list = parse_options({"topics": "weather, flights,weather"})
    by_pattern = parse_options({"TOPICPATTERN": "flights(-.*)?"})
    assert chosen(by_list, ()) == ["flights", "weather"]
    assert chosen(by_pattern, names) == ["flights", "flights-2"]
    with pytest.raises(OttlaError, match="no regular expression of RE2"):
        chosen(parse_options({"topicPattern": "a(?=b)"}), names)


def test_boundaries_of_several_topics() -> None:
    assert boundaries("@5", ["a", "b"]) == dict.fromkeys("ab", Boundary("timestamp", 5))
    assert boundaries("a-b-0:5,c-1:-2,c-2:7", ["a-b", "c", "d"]) == {
        "a-b": Boundary("offsets", offsets={0: 5}),
        "c": Boundary("offsets", offsets={1: -2, 2: 7}),
        "d": Boundary("offsets", offsets={}),
    }
    assert boundaries("2024-01-31T09:00:00-05:00", ["a"]) == {
        "a": Boundary("timestamp", 1_706_709_600_000)
    }
    assert boundaries("0:5", ["a"]) == {"a": Boundary("offsets", offsets={0: 5})}


@pytest.mark.parametrize(
    ("text", "told"), [("0:5", "names no topic"), ("x-0:5", "the topic 'x', which is not read")]
)
def test_boundaries_that_fit_no_topic_are_refused(text: str, told: str) -> None:
    with pytest.raises(OttlaError, match=told):
        boundaries(text, ["a", "b"])
