"""The data source's options: what they mean, and what is said of wrong ones."""

import pytest

from ottla.base.errors import OttlaError
from ottla.lake.model.plan import Boundary
from ottla.lake.source.boundaries import boundaries, chosen
from ottla.lake.source.source_options import LATEST, Boundaries, parse_options

T = {"subscribe": "t"}


def test_defaults() -> None:
    """A batch begins at the earliest offset, a stream at the latest, as with Spark's connector."""
    found = parse_options(T)
    assert (found.topics, found.start, found.end) == (
        ("t",),
        Boundaries(Boundary("earliest")),
        LATEST,
    )
    assert parse_options(T, start="latest").start == LATEST
    assert found.fail_on_data_loss
    assert found.delay_max_ms == 900_000
    assert found.offsets_per_task is None
    assert found.columns[-2:] == ("timestamp", "timestampType")
    assert parse_options(T | {"includeHeaders": "true"}).columns[-1] == "headers"


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({}, "which topic"),
        ({"subscribe": "a", "subscribePattern": "b"}, "which topic"),
        ({"subscribe": " , "}, "which topic"),
        (T | {"maxBytesPerTrigger": "0"}, "not a size such as 500k"),
        (T | {"maxTriggerDelay": "soon"}, "not a span such as 500ms"),
        (T | {"failOnDataLoss": "no"}, "not true or false"),
        (T | {"onBadTimestamp": "skip"}, "not null or fail"),
        (T | {"endingOffsets": "last-load"}, "last-load of which table"),
        (T | {"startingOffsets": '{"t": 5}'}, "startingOffsets is "),
        (T | {"assign": "t"}, "assign is 't', not "),
        (T | {"maxOffsetsPerTrigger": "²"}, "maxOffsetsPerTrigger is '²', not a whole number"),
        (T | {"maxOffsetsPerTrigger": "9" * 5000}, "not a whole number"),
        (T | {"bytesPerTask": "9" * 400}, "not a size"),
        (T | {"maxTriggerDelay": "9" * 400 + "d"}, "not a span"),
        (T | {"startingTimestamp": "²"}, "startingTimestamp is '²', not milliseconds"),
        (T | {"startingTimestamp": "9" * 20}, "not milliseconds since 1970"),
        (T | {"startingTimestamp": "0001-01-01"}, "not milliseconds since 1970"),
        (T | {"startingOffsets": '{"t": {"0": 1.9}}'}, "startingOffsets is "),
        (T | {"startingOffsets": '{"t": {"0": true}}'}, "startingOffsets is "),
        (T | {"startingOffsets": '{"t": {"0": Infinity}}'}, "startingOffsets is "),
        (T | {"startingOffsets": '{"t": {"0": -3}}'}, "startingOffsets is "),
        (T | {"startingOffsets": '{"t": {"-1": 7}}'}, "startingOffsets is "),
        (T | {"startingOffsets": '{"a":' * 50_000}, "startingOffsets is "),
        (T | {"startingOffsetsByTimestamp": '{"t": {"0": -1}}'}, "startingOffsetsByTimestamp is "),
        ({"assign": '{"t": "012"}'}, "assign is "),
        ({"assign": '{"t": [0.9]}'}, "assign is "),
        ({"assign": '{"t": [-1]}'}, "assign is "),
        (T | {"maxOffsetsPerTriger": "5"}, "did you mean maxOffsetsPerTrigger"),
    ],
)
def test_wrong_ones_are_refused(options: dict[str, str], told: str) -> None:
    with pytest.raises(OttlaError, match=told):
        parse_options(options)


def test_topics_by_list_by_pattern_and_by_partition() -> None:
    """A pattern has to match the whole name."""
    names = ["flights", "flights-2", "old-flights", "weather"]
    by_list = parse_options({"subscribe": "weather, flights,weather"})
    by_pattern = parse_options({"SUBSCRIBEPATTERN": "flights(-.*)?"})
    by_partition = parse_options({"assign": '{"weather": [1], "flights": [0, 2]}'})
    assert chosen(by_list, ()) == chosen(by_partition, ()) == ["flights", "weather"]
    assert chosen(by_pattern, names) == ["flights", "flights-2"]
    with pytest.raises(OttlaError, match="no regular expression of RE2"):
        chosen(parse_options({"subscribePattern": "a(?=b)"}), names)


def test_places_of_several_topics() -> None:
    """Of a topic that is not named it is the default."""
    place = parse_options(T | {"startingOffsets": '{"a": {"0": 5}, "b": {"1": -2, "2": 7}}'}).start
    assert boundaries(place, ["a", "b", "c"]) == {
        "a": Boundary("offsets", offsets={0: 5}),
        "b": Boundary("offsets", offsets={1: -2, 2: 7}),
        "c": Boundary("offsets", offsets={}),
    }
    with pytest.raises(OttlaError, match="the topic 'b' is to be read is said"):
        boundaries(place, ["a"])


def test_times_go_before_offsets_and_are_strict_unless_said() -> None:
    """The time of all partitions goes before those of single ones."""
    time, times = {"startingTimestamp": "5"}, {"startingOffsetsByTimestamp": '{"t": {"0": 7}}'}
    latest = {"startingOffsetsByTimestampStrategy": "latest"}
    given = T | {"startingOffsets": "earliest"} | times
    assert parse_options(given | time | latest).start == Boundaries(Boundary("timestamp", 5))
    (found,) = parse_options(given).start.by_topic.values()
    assert found == Boundary("times", times={0: 7}, is_strict=True)
    moment = {"startingTimestamp": "2024-01-31T09:00:00-05:00"}
    assert parse_options(T | moment | latest).start == Boundaries(
        Boundary("timestamp", 1_706_709_600_000)
    )
