"""`ottla topic delete-records`, `offsets` and `sizes`, `ottla cluster log-dirs`."""

from collections.abc import Callable

import pytest

from tests.system.cli.ottla_command import Command

MakeTopic = Callable[..., str]


def test_records_are_deleted_below_a_place(run: Command, make_topic: MakeTopic) -> None:
    """By offset, by count and by time; the log begins there for everyone."""
    topic = make_topic(partitions=2)
    run("produce", topic, "-p", "0", stdin="a\nb\nc\nd\n")
    run("produce", topic, "-p", "1", stdin="x\ny\n")
    (row,) = run(
        *("topic", "delete-records", f"{topic}-0", "--before", "1", "--yes", "-o", "json")
    ).json
    assert row == {"topic": topic, "partition": 0, "old_start": 0, "new_start": 1, "deleted": 1}
    assert sorted(run("consume", topic).lines) == ["b", "c", "d", "x", "y"]
    run("topic", "delete-records", topic, "--before", "-1", "--yes")
    assert sorted(run("consume", topic).lines) == ["d", "y"]
    run("topic", "delete-records", topic, "--before", "1d", "--yes")
    assert sorted(run("consume", topic).lines) == ["d", "y"]
    run("topic", "delete-records", topic, "--before", "latest", "--yes")
    assert run("consume", topic).lines == []


def test_records_that_are_not_there_cannot_be_deleted(run: Command, make_topic: MakeTopic) -> None:
    """The broker refuses an offset beyond the end, as Kafka does; without --yes nothing goes."""
    topic = make_topic()
    run("produce", topic, stdin="a\nb\n")
    said = run.refused("topic", "delete-records", topic, "--before", "3", "--yes")
    assert "OFFSET_OUT_OF_RANGE" in said
    assert "`ottla topic offsets` shows where the log ends" in said
    assert "beginning_offsets" not in said
    asked = run.try_to("topic", "delete-records", topic, "--before", "latest")
    assert (asked.code, "add --yes" in asked.error) == (2, True)
    assert run("consume", topic).lines == ["a", "b"]


def test_records_that_may_not_be_deleted_are_refused_with_the_reason(
    run: Command, make_topic: MakeTopic
) -> None:
    """The protocol's answer has a code only."""
    topic = make_topic(cleanup_policy="compact")
    run("produce", topic, "--key-separator", ":", stdin="k:v\n")
    run("consume", topic, "-g", f"{topic}-readers")
    for name, why in (("__consumer_offsets", "internal topic"), (topic, "compacted only")):
        said = run.refused("topic", "delete-records", f"{name}-0", "--before", "0", "--yes")
        assert why in said


def test_offsets_are_shown_at_a_time(run: Command, make_topic: MakeTopic) -> None:
    """The first record of then or later; none where all are older."""
    topic = make_topic(partitions=2)
    run("produce", topic, "-p", "1", stdin="a\nb\n")
    (_, one) = run("topic", "offsets", topic, "-o", "json").json
    assert one == {"topic": topic, "partition": 1, "start_offset": 0, "end_offset": 2}
    empty, full = run("topic", "offsets", topic, "--at", "10m ago", "-o", "json").json
    assert (empty["offset"], empty["time"], full["offset"]) == (None, None, 0)
    assert full["timestamp"] > 0
    (later,) = run("topic", "offsets", f"{topic}-1", "--at", "@99999999999999", "-o", "json").json
    assert later["offset"] is None
    for end, offset in (("earliest", 0), ("latest", full["end_offset"])):
        (row,) = run("topic", "offsets", f"{topic}-1", "--at", end, "-o", "json").json
        assert (row["offset"], row["time"]) == (offset, None)
    assert run("topic", "offsets", topic, "--at", "1h").lines[0].split() == [
        *("topic", "partition", "start", "offset", "end", "offset", "offset", "time")
    ]


def test_sizes_are_those_of_leaders_and_of_all_replicas(
    run: Command, make_topic: MakeTopic
) -> None:
    """The same bytes are found by topic, and by broker and folder."""
    topic, other = make_topic(partitions=2), make_topic()
    run("produce", topic, stdin="x" * 10_000 + "\n")
    first, last = run("topic", "sizes", other, topic, "-o", "json").json
    assert [first["name"], last["name"]] == [topic, other]
    assert (first["partition_count"], first["leader_bytes"]) == (2, first["replica_bytes"])
    assert first["replica_bytes"] > 10_000
    assert last["replica_bytes"] == 0
    assert "9.8 KiB" in run("topic", "sizes", topic).lines[1]
    (folder,) = run("cluster", "log-dirs", "-o", "json").json
    assert first["replica_bytes"] == sum(
        one["bytes"] for one in folder["partitions"] if one["topic"] == topic
    )
    assert run("cluster", "log-dirs", "--broker", str(folder["broker"])).lines[0].split() == [
        *("broker", "path", "replicas", "logs", "usable", "total")
    ]
    assert "there is no topic" in run.refused("topic", "sizes", "nothing-here")


def test_several_topics_are_described_by_name_or_pattern(
    run: Command, make_topic: MakeTopic, name: str
) -> None:
    """One name gives an object, others a list; a setting is shown as people write it."""
    one, two = f"{name}.one", f"{name}.two"
    run("topic", "create", one, "-s", "retention.ms=90m", "-s", "segment.bytes=64Mi")
    run("topic", "create", two)
    assert run("topic", "describe", one, "-o", "json").json["name"] == one
    for words in ((one, two), ("--regex", rf"{name}\..*")):
        assert [each["name"] for each in run("topic", "describe", *words, "-o", "json").json] == [
            one,
            two,
        ]
    lines = [line.split() for line in run("topic", "describe", one, two).lines]
    assert ["retention.ms", "1h30m", "topic"] in lines
    assert ["segment.bytes", "64Mi", "topic"] in lines
    assert run("topic", "describe", "-r", f"{name}.*", "--unavailable", "-o", "json").json == []
    assert "no topic's whole name matches" in run.try_to("topic", "describe", "-r", "zzz").error
    assert run.try_to("topic", "describe", "-r", "(").code == 2


@pytest.mark.parametrize("every", [True, False])
def test_several_groups_are_described(run: Command, make_topic: MakeTopic, every: bool) -> None:
    """All of a cluster, or those that are named."""
    topic = make_topic()
    run("produce", topic, stdin="a\nb\n")
    ids = [f"{topic}-one", f"{topic}-two"]
    for group in ids:
        run("consume", topic, "--group", group, "-n", "1")
    words = ("--all",) if every else ids
    described = run("group", "describe", *words, "-o", "json").json
    lags = {each["group"]: each["lag"] for each in described}
    assert [lags[group] for group in ids] == [1, 1]
    assert run("group", "describe", *words).out.count("lag") >= 2
    assert "name groups, or say --all" in run.misused("group", "describe")
