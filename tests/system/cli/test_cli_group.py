"""`ottla group`: who reads, how far, and from where it goes on."""

import signal
import subprocess
import time
from collections.abc import Callable

import pytest
from confluent_kafka import ShareConsumer

import ottla.client.sync
import ottla.testing
from tests.system.cli.ottla_command import Command

MakeTopic = Callable[..., str]


@pytest.fixture
def topic(run: Command, make_topic: MakeTopic) -> str:
    """Ten records in partition 0, none in partition 1."""
    name = make_topic(partitions=2)
    run("produce", name, "-p", "0", stdin="".join(f"{number}\n" for number in range(10)))
    return name


def test_a_group_is_listed_described_and_deleted(run: Command, topic: str) -> None:
    """The lag is what lies between the committed offset and the end."""
    group = f"{topic}-group"
    run("consume", topic, "-g", group, "-n", "4")
    assert [group, "Empty", "consumer", "classic"] in [
        line.split() for line in run("group", "list").lines
    ]
    listed = run("group", "list", "--state", "Empty", "-o", "json").json
    assert {"group": group, "state": "Empty", "protocol": "consumer", "type": "classic"} in listed
    assert run("group", "list", "--state", "Stable", "-o", "json").json == []
    described = run("group", "describe", group, "-o", "json").json
    (row,) = described["partitions"]
    # By the default of retention.ms.
    assert 0 < row.pop("time_left_ms") <= 604_800_000
    assert row.pop("loss").startswith("in ")
    assert described == {
        "group": group,
        "state": "Empty",
        "assignor": None,
        "coordinator": 0,
        "lag": 6,
        "members": [],
        "partitions": [
            {
                "topic": topic,
                "partition": 0,
                "committed": 4,
                "end_offset": 10,
                "lag": 6,
                "beyond_end": 0,
                "log_start": 0,
                "deleted_unread": 0,
                "client_id": None,
                "member_id": None,
            }
        ],
    }
    lines = run("group", "describe", group).lines
    words = lines[-1].split()
    assert (words[:5], words[-1]) == ([topic, "0", "4", "10", "6"], "-")
    assert "add --yes" in run.misused("group", "delete", group)
    assert run("group", "delete", group, "--yes").out == f"Deleted {group}.\n"
    assert "there is no group" in run.refused("group", "describe", group)


def test_a_committed_offset_beyond_the_end_is_shown(run: Command, topic: str) -> None:
    """A lag of 0 alone would look as if all had been read."""
    group = f"{topic}-beyond"
    with ottla.client.sync.Consumer(run.bootstrap, group_id=group) as consumer:
        consumer.commit({ottla.client.TopicPartition(topic, 0): 99})
    answer = run("group", "describe", group)
    assert f"{topic}-0: the committed offset 99 is 89 beyond the end 10." in answer.out
    (row,) = run("group", "describe", group, "-o", "json").json["partitions"]
    assert (row["committed"], row["lag"], row["beyond_end"]) == (99, 0, 89)


def test_reset_shows_first_and_does_when_asked_and_can_be_undone(run: Command, topic: str) -> None:
    """The preview changes nothing; the command it prints after a change takes it back."""
    group = f"{topic}-group"
    run("consume", topic, "-g", group, "-n", "4")
    preview = run("group", "reset", group, "--to-earliest")
    assert [line.split() for line in preview.lines[:2]] == [
        ["topic", "partition", "start", "offset", "old", "new", "end", "offset", "change", "note"],
        [topic, "0", "0", "4", "0", "10", "-4"],
    ]
    assert "Nothing is changed yet; the same with --execute does it." in preview.out
    assert _committed(run, group) == {(topic, 0): 4}
    done = run("group", "reset", group, "--to-earliest", "--execute")
    assert _committed(run, group) == {(topic, 0): 0}
    undo = done.lines[-1].split()
    assert undo == ["ottla", "group", "reset", group, "--to-offset", f"{topic}:0=4", "--execute"]
    run(*undo[1:])
    assert _committed(run, group) == {(topic, 0): 4}
    assert "stands there already" in run(*undo[1:]).out


@pytest.mark.parametrize(
    ("words", "new", "note"),
    [
        (("--to-latest",), 10, ""),
        (("--to-offset", "7"), 7, ""),
        (("--to-offset", "99"), 10, "99 is beyond the end"),
        (("--by", "-3"), 1, ""),
        (("--by", "-30"), 0, "-26 is before the first record"),
        (("--to-time", "2020-01-01T00:00:00Z"), 0, ""),
        (("--to-time", "now"), 10, "no record is as late: the end"),
    ],
)
def test_reset_goes_where_it_is_told_but_not_beyond_the_log(
    run: Command, topic: str, words: tuple[str, ...], new: int, note: str
) -> None:
    """What lies outside of the log becomes its nearest end, and the table says so."""
    group = f"{topic}-group"
    run("consume", topic, "-g", group, "-n", "4")
    answer = run("group", "reset", group, *words, "--execute", "-o", "json").json
    assert answer == {
        "group": group,
        "executed": True,
        "partitions": [
            {
                "topic": topic,
                "partition": 0,
                "start_offset": 0,
                "old": 4,
                "new": new,
                "end_offset": 10,
                "change": new - 4,
                "note": note,
            }
        ],
        "undo": f"ottla group reset {group} --to-offset {topic}:0=4 --execute",
    }
    assert _committed(run, group) == {(topic, 0): new}


def test_reset_of_named_partitions_and_of_a_group_that_is_new(run: Command, topic: str) -> None:
    """A start can be given before the group exists; undoing that forgets it again."""
    group = f"{topic}-new"
    assert "there is no group" in run.refused("group", "reset", group, "--to-earliest")
    made = run("group", "reset", group, "--to-latest", "-t", f"{topic}:0,1", "-y", "-o", "json")
    assert _committed(run, group) == {(topic, 0): 10, (topic, 1): 0}
    assert f"{topic}:0=none" in made.json["undo"]
    elsewhere = Command("localhost:9092")
    preview = elsewhere("group", "reset", group, "--by", "-1", "-b", run.bootstrap, "-o", "json")
    assert preview.json["undo"].endswith(f" --execute --bootstrap {run.bootstrap}")
    run("group", "reset", group, "--to-earliest", "--topic", f"{topic}:0", "--yes")
    assert _committed(run, group) == {(topic, 0): 0, (topic, 1): 0}
    run("group", "reset", group, "--to-offset", f"{topic}:1=none", "--yes")
    assert _committed(run, group) == {(topic, 0): 0}


def test_an_active_group_is_not_moved(
    run: Command, topic: str, broker: ottla.testing.Broker
) -> None:
    """Its consumers would overwrite it: they are named, and nothing changes."""
    group = f"{topic}-group"
    with subprocess.Popen(
        run.line("consume", topic, "-f", "-g", group),
        stdout=subprocess.PIPE,
        env=run.environment,
    ) as reading:
        assert reading.stdout is not None
        assert reading.stdout.readline() == b"0\n"
        broker.until_consumed(group, topic, timeout=120)
        for words in (("reset", group, "--to-earliest", "--execute"), ("delete", group, "-y")):
            told = run.refused("group", *words)
            assert f"group '{group}' is active (Stable, 1 member: ottla-cli at /127.0.0.1)" in told
            assert "stop its consumers" in told
        (member,) = run("group", "describe", group, "-o", "json").json["members"]
        assert sorted(member["partitions"]) == [f"{topic}-0", f"{topic}-1"]
        reading.send_signal(signal.SIGINT)
        assert reading.wait(120) == 130
    assert _committed(run, group) == {(topic, 0): 10}
    run("group", "reset", group, "--to-earliest", "--execute")


def test_wrong_words_about_groups_are_told_with_the_right_ones(run: Command, topic: str) -> None:
    """Contradictions are usage errors; unknown groups are answered with the nearest."""
    group = f"{topic}-group"
    run("consume", topic, "-g", group, "-n", "1")
    assert f"did you mean {group}" in run.refused("group", "describe", f"{group}s")
    assert "give exactly one of --to-earliest" in run.misused("group", "reset", group)
    assert "give exactly one of --to-earliest" in run.misused(
        *("group", "reset", group, "--to-earliest", "--by", "1")
    )
    for words, told in (
        (("--to-offset", "x"), "is no offset"),
        (("--to-offset", "a=5"), "TOPIC:PARTITION=OFFSET"),
        (("--to-time", "soon"), "is no time"),
        (("--to-earliest", "-t", f"{topic}:x"), "TOPIC:0,1,2"),
    ):
        assert told in run.misused("group", "reset", group, *words)
    assert "there is no topic" in run.refused(
        *("group", "reset", group, "--to-earliest", "-t", "nonexistent")
    )


def _committed(run: Command, group: str) -> dict[tuple[str, int], int]:
    rows = run("group", "describe", group, "-o", "json").json["partitions"]
    return {(row["topic"], row["partition"]): row["committed"] for row in rows}


def test_a_share_group_is_described_and_deleted(
    run: Command, topic: str, broker: ottla.testing.Broker
) -> None:
    """Its start and what is behind it; members share partitions, and nothing is committed."""
    group = f"{topic}-share"
    run("config", "set", "group", group, "share.auto.offset.reset=earliest")
    settings = {"bootstrap.servers": broker.bootstrap, "group.id": group, "log_level": 0}
    consumer = ShareConsumer(settings | {"share.acknowledgement.mode": "explicit"})
    consumer.subscribe([topic])
    seen: set[int] = set()
    deadline = time.monotonic() + 60
    while len(seen) < 10 and time.monotonic() < deadline:
        for message in consumer.poll(1.0):
            number = int(message.value() or b"")
            # The last two are given back.
            consumer.acknowledge(message, 1 if number < 8 else 2)
            seen.add(number)
        consumer.commit_sync(30)
    described = run("group", "describe", group, "-o", "json").json
    assert (described["state"], described["assignor"]) == ("Stable", "simple")
    (member,) = described["members"]
    rows = {row["partition"]: row for row in described["partitions"]}
    assert rows[0]["members"] == [member["member_id"]]
    assert (rows[0]["start_offset"], rows[0]["lag"]) == (8, 2)
    assert "active" in run.refused("group", "delete", group, "--yes")
    consumer.close()
    assert run("group", "describe", group).lines[-2].split() == [topic, "0", "8", "2", "0"]
    assert run("group", "delete", group, "--yes").out == f"Deleted {group}.\n"


def test_a_share_group_is_reset(run: Command, topic: str, broker: ottla.testing.Broker) -> None:
    """Shown first, done when asked, undone by the command it prints; or it forgets the topic."""
    group = f"{topic}-moved"
    # Released as often as it comes, until all have come.
    again = "share.delivery.count.limit=10"
    run("config", "set", "group", group, "share.auto.offset.reset=earliest", again)
    settings = {"bootstrap.servers": broker.bootstrap, "group.id": group, "log_level": 0}

    def take(count: int, released: int = -1) -> set[int]:
        """Numbers of so many records; all but that one are accepted."""
        consumer = ShareConsumer(settings | {"share.acknowledgement.mode": "explicit"})
        consumer.subscribe([topic])
        seen: set[int] = set()
        deadline = time.monotonic() + 120
        while len(seen) < count and time.monotonic() < deadline:
            for message in consumer.poll(1.0):
                number = int(message.value() or b"")
                consumer.acknowledge(message, 2 if number == released else 1)
                seen.add(number)
            consumer.commit_sync(30)
        consumer.close()
        return seen

    def moved(*where: str) -> tuple[object, object, object]:
        """What becomes of partition 0, which has all records."""
        shown = run("group", "reset", group, *where, "-o", "json").json
        (row,) = (each for each in shown["partitions"] if each["partition"] == 0)
        return row["old"], row["new"], row["note"]

    assert take(10, released=6) == set(range(10))
    back = ("--to-offset", f"{topic}:0=6")
    assert moved("--to-earliest") == (6, 0, "3 done with come again")
    assert moved(*back) == (6, 6, "3 done with come again")
    assert run("group", "describe", group, "-o", "json").json["partitions"][0]["lag"] == 1
    done = run("group", "reset", group, "--to-earliest", "--execute", "-o", "json").json
    assert f"--to-offset {topic}:0=6 " in done["undo"]
    assert take(10) == set(range(10))
    run("group", "reset", group, *back, "--execute")
    assert take(4) == {6, 7, 8, 9}
    none = ("--to-offset", f"{topic}:0=none")
    assert "forgets whole topics" in run.refused("group", "reset", group, *none, "--execute")
    run("group", "reset", group, *none, "--to-offset", f"{topic}:1=none", "--execute")
    assert run("group", "describe", group, "-o", "json").json["partitions"] == []
    assert take(10) == set(range(10))
