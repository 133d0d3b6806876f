"""Java's share consumer and `kafka-share-groups` (KIP-932), by the tools of Kafka 4.3."""

import json
from collections.abc import Callable, Iterator

import pytest
from rig import tools as t
from rig.tools import Tools

from tests.system.clients.conftest import MakeTopic, unique

Run = Callable[..., t.Ran]


@pytest.fixture
def run(jvm: Tools, bootstrap: str) -> Iterator[Run]:
    """Run a tool against the broker: `run(t.TOPICS, "--list")`."""

    def tool(name: str, *arguments: object, stdin: bytes = b"") -> t.Ran:
        return jvm.run(name, "--bootstrap-server", bootstrap, *arguments, stdin=stdin)

    return tool


@pytest.fixture
def group(run: Run) -> str:
    """A share group that begins at the log's start."""
    name = unique("queue")
    earliest = "share.auto.offset.reset=earliest"
    run(
        *(t.CONFIGS, "--alter", "--entity-type", "groups", "--entity-name", name),
        *("--add-config", earliest),
    ).ok()
    return name


def send(run: Run, topic: str, count: int) -> list[str]:
    lines = [f"record {number}" for number in range(count)]
    run(t.CONSOLE_PRODUCER, "--topic", topic, stdin="\n".join(lines).encode() + b"\n").ok()
    return lines


def receive(run: Run, topic: str, group: str, count: int, *arguments: object) -> list[str]:
    ran = run(
        t.CONSOLE_SHARE_CONSUMER,
        *("--topic", topic, "--group", group, "--max-messages", count, "--timeout-ms", 120_000),
        *arguments,
    )
    return sorted(ran.ok().splitlines())


def rows(run: Run, group: str, *arguments: object) -> list[dict[str, str]]:
    """The table of a description, by its headings."""
    lines = run(t.SHARE_GROUPS, "--describe", "--group", group, *arguments).ok().splitlines()
    tables = [line.split() for line in lines if line.split() and not line.startswith("Share group")]
    return [dict(zip(tables[0], row, strict=False)) for row in tables[1:]]


def test_the_console_share_consumer_gets_records_once(
    run: Run, make_topic: MakeTopic, group: str
) -> None:
    """What it accepted is not given to the next one, and the group's start has moved."""
    topic = make_topic(1)
    sent = send(run, topic, 20)
    assert receive(run, topic, group, 20) == sorted(sent)
    (row,) = rows(run, group)
    assert (row["TOPIC"], row["PARTITION"], row["START-OFFSET"]) == (topic, "0", "20")
    assert row.get("LAG", "0") == "0"


def test_rejected_records_are_done_with(run: Run, make_topic: MakeTopic, group: str) -> None:
    """`--reject` is an answer like any other: nothing is left for the next member."""
    topic = make_topic(1)
    sent = send(run, topic, 5)
    assert receive(run, topic, group, 5, "--reject") == sorted(sent)
    (row,) = rows(run, group)
    assert row["START-OFFSET"] == "5"


def test_a_share_group_is_listed_described_reset_and_deleted(
    run: Run, make_topic: MakeTopic, group: str
) -> None:
    """As `kafka-share-groups` does it; a reset lets its records come again."""
    topic = make_topic(1)
    sent = send(run, topic, 8)
    assert receive(run, topic, group, 8) == sorted(sent)
    assert group in run(t.SHARE_GROUPS, "--list").ok().split()
    listed = run(t.GROUPS_OF_ALL_KINDS, "--list", "--group-type", "share").ok()
    (line,) = [line for line in listed.splitlines() if line.startswith(group)]
    assert line.split()[1].lower() == "share"
    (state,) = rows(run, group, "--state")
    assert "Empty" in state.values()

    reset = ("--reset-offsets", "--group", group, "--topic", topic, "--to-earliest", "--execute")
    run(t.SHARE_GROUPS, *reset).ok()
    (row,) = rows(run, group)
    assert row["START-OFFSET"] == "0"
    assert receive(run, topic, group, 8) == sorted(sent)

    run(t.SHARE_GROUPS, "--delete-offsets", "--group", group, "--topic", topic).ok()
    assert rows(run, group) == []
    assert receive(run, topic, group, 8) == sorted(sent)

    run(t.SHARE_GROUPS, "--delete", "--group", group).ok()
    assert group not in run(t.SHARE_GROUPS, "--list").ok().split()


def test_the_verifiable_share_consumer_acknowledges_all_it_gets(
    run: Run, make_topic: MakeTopic, group: str
) -> None:
    """Kafka's own system tests are written with it."""
    topic = make_topic(3)
    send(run, topic, 60)
    ran = run(
        t.VERIFIABLE_SHARE_CONSUMER,
        *("--topic", topic, "--group-id", group, "--max-messages", 60),
        *("--acknowledgement-mode", "sync"),
    )
    events = [json.loads(line) for line in ran.ok().splitlines() if line.startswith("{")]
    acknowledged = [each for each in events if each["name"] == "offsets_acknowledged"]
    assert all(each["success"] for each in acknowledged)
    assert sum(each["count"] for each in acknowledged) == 60


def test_what_java_rejects_leaves_dead_letters(run: Run, make_topic: MakeTopic, group: str) -> None:
    """With the records' content, where kafka-configs says that they are to have it (KIP-1191)."""
    topic, dead = make_topic(1), unique("dlq.letters")
    run(t.TOPICS, "--create", "--topic", dead, "--partitions", 1).ok()
    for kind, name, settings in (
        ("topics", dead, "errors.deadletterqueue.group.enable=true"),
        (
            "groups",
            group,
            f"errors.deadletterqueue.topic.name={dead},"
            "errors.deadletterqueue.copy.record.enable=true",
        ),
    ):
        run(
            *(t.CONFIGS, "--alter", "--entity-type", kind, "--entity-name", name),
            *("--add-config", settings),
        ).ok()
    sent = send(run, topic, 5)
    assert receive(run, topic, group, 5, "--reject") == sorted(sent)
    told = run(
        *(t.CONSOLE_CONSUMER, "--topic", dead, "--from-beginning", "--max-messages", 5),
        *("--timeout-ms", 120_000, "--formatter-property", "print.headers=true"),
    ).ok()
    # A letter that was written twice counts once.
    letters = {tuple(line.split("\t")) for line in told.splitlines() if line}
    expected = {
        (
            f"__dlq.errors.topic:{topic},__dlq.errors.partition:0,__dlq.errors.offset:{offset},"
            f"__dlq.errors.group:{group},__dlq.errors.delivery.count:1,"
            "__dlq.errors.message:Offset rejected by client.",
            line,
        )
        for offset, line in enumerate(sent)
    }
    assert letters == expected
