"""Kafka's own command-line tools (4.3), one after another in one JVM."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from rig import tools as t
from rig.tools import Tools

MakeTopic = Callable[..., str]
Run = Callable[..., t.Ran]


@pytest.fixture
def run(jvm: Tools, bootstrap: str) -> Iterator[Run]:
    """Run a tool against the broker: `run(t.TOPICS, "--list")`."""

    def tool(name: str, *arguments: object, stdin: bytes = b"") -> t.Ran:
        return jvm.run(name, "--bootstrap-server", bootstrap, *arguments, stdin=stdin)

    return tool


def send(run: Run, topic: str, lines: list[str], **settings: object) -> None:
    """What `kafka-console-producer` does with lines of key, tab, value."""
    properties = [f"--producer-property={k.replace('_', '.')}={v}" for k, v in settings.items()]
    text = "".join(line + "\n" for line in lines).encode()
    run(
        t.CONSOLE_PRODUCER,
        *("--topic", topic, "--reader-property", "parse.key=true", *properties),
        stdin=text,
    ).ok()


def receive(run: Run, topic: str, count: int, *arguments: object) -> list[str]:
    """What `kafka-console-consumer` prints of so many records."""
    ran = run(
        t.CONSOLE_CONSUMER,
        *("--topic", topic, "--max-messages", count, "--timeout-ms", 120_000),
        *("--formatter-property", "print.key=true", *arguments),
    )
    return ran.ok().splitlines()


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_console_producer_and_consumer_pass_records_with_every_codec(
    run: Run, make_topic: MakeTopic, codec: str
) -> None:
    topic = make_topic()
    lines = [f"key{i}\t{'value' * 20}{i}" for i in range(50)]

    send(run, topic, lines, compression_type=codec)

    assert receive(run, topic, 50, "--partition", 0, "--offset", "earliest") == lines


def test_console_consumer_in_a_group_leaves_its_offset_behind(
    run: Run, make_topic: MakeTopic, group: str
) -> None:
    """The group tool tells offset, end and lag; a reset moves it, and a consumer resumes there."""
    topic = make_topic()
    send(run, topic, [f"k\tv{i}" for i in range(10)])
    receive(run, topic, 10, "--group", group, "--from-beginning")

    described = run(t.GROUPS, "--describe", "--group", group).ok()
    reset = run(
        t.GROUPS,
        *("--group", group, "--topic", topic),
        *("--reset-offsets", "--to-offset", 4, "--execute"),
    ).ok()
    resumed = receive(run, topic, 6, "--group", group)
    state = run(t.GROUPS, "--describe", "--state", "--group", group).ok()

    assert re.search(rf"{group}\s+{topic}\s+0\s+10\s+10\s+0\b", described), described
    assert re.search(rf"{topic}\s+0\s+4\b", reset), reset
    assert resumed == [f"k\tv{i}" for i in range(4, 10)]
    assert "Empty" in state


def test_group_tool_lists_and_deletes_groups(run: Run, make_topic: MakeTopic, group: str) -> None:
    topic = make_topic()
    send(run, topic, ["k\tv"])
    receive(run, topic, 1, "--group", group, "--from-beginning")

    before = run(t.GROUPS, "--list").ok()
    offsets = run(t.GROUPS, "--delete-offsets", "--group", group, "--topic", topic).ok()
    deleted = run(t.GROUPS, "--delete", "--group", group).ok()
    after = run(t.GROUPS, "--list").ok()
    all_kinds = run(t.GROUPS_OF_ALL_KINDS, "--list").ok()

    assert group in before.split()
    assert "Successful" in offsets
    assert group in deleted
    assert group not in after.split()
    assert "PROTOCOL" in all_kinds or all_kinds == ""


def test_topics_are_created_described_grown_and_deleted(run: Run, group: str) -> None:
    topic = f"tool-{group}"
    name = ("--topic", topic)

    run(t.TOPICS, "--create", *name, "--partitions", 2, "--config", "retention.ms=99").ok()
    run(t.TOPICS, "--alter", *name, "--partitions", 3).ok()
    described = run(t.TOPICS, "--describe", *name).ok()
    twice = run(t.TOPICS, "--create", *name)
    run(t.TOPICS, "--delete", *name).ok()
    listed = run(t.TOPICS, "--list").lines()

    assert "PartitionCount: 3" in described
    assert "retention.ms=99" in described
    assert len(re.findall(r"Leader: 1\tReplicas: 1\tIsr: 1", described)) == 3
    assert twice.exit_code == 1
    assert "already exists" in twice.out + twice.err
    assert topic not in listed


def test_configs_of_topics_and_brokers_are_read_and_changed(
    run: Run, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    entity = ("--entity-type", "topics", "--entity-name", topic)

    run(t.CONFIGS, *entity, "--alter", "--add-config", "retention.ms=1000,segment.ms=5000").ok()
    changed = run(t.CONFIGS, *entity, "--describe").ok()
    run(t.CONFIGS, *entity, "--alter", "--delete-config", "segment.ms").ok()
    removed = run(t.CONFIGS, *entity, "--describe").ok()
    everything = run(t.CONFIGS, *entity, "--describe", "--all").ok()
    broker = run(
        t.CONFIGS, "--entity-type", "brokers", "--entity-name", 1, "--describe", "--all"
    ).ok()

    assert "retention.ms=1000" in changed
    assert "segment.ms=5000" in changed
    assert "segment.ms" not in removed
    assert "cleanup.policy=delete" in everything
    assert "DEFAULT_CONFIG:log.cleanup.policy=delete" in everything
    assert "log.retention.hours=168" in broker


def test_broker_default_is_changed_without_a_restart(run: Run, make_topic: MakeTopic) -> None:
    """A dynamic broker setting shows through at topics that do not say otherwise."""
    brokers = ("--entity-type", "brokers", "--entity-default")
    topic = make_topic()
    entity = ("--entity-type", "topics", "--entity-name", topic)

    run(t.CONFIGS, *brokers, "--alter", "--add-config", "log.segment.bytes=2097152").ok()
    during = run(t.CONFIGS, *entity, "--describe", "--all").ok()
    run(t.CONFIGS, *brokers, "--alter", "--delete-config", "log.segment.bytes").ok()
    after = run(t.CONFIGS, *entity, "--describe", "--all").ok()

    assert "segment.bytes=2097152" in during
    assert "segment.bytes=1073741824" in after


def test_offsets_are_told_by_time(run: Run, make_topic: MakeTopic) -> None:
    topic = make_topic(partitions=2)
    send(run, topic, [f"same\tv{i}" for i in range(7)])

    def offsets(*arguments: object) -> list[str]:
        return sorted(run(t.OFFSETS, "--topic", topic, *arguments).ok().split())

    latest = offsets("--time", "latest")
    earliest = offsets("--time", "earliest")
    largest = offsets("--time", "max-timestamp")
    future = offsets("--time", 4_000_000_000_000)

    assert sorted(line.rsplit(":", 1)[1] for line in latest) == ["0", "7"]
    assert earliest == [f"{topic}:0:0", f"{topic}:1:0"]
    assert len(largest) == 1  # An empty partition has no largest timestamp.
    assert future == []


def test_records_are_deleted_up_to_an_offset(
    run: Run, make_topic: MakeTopic, tmp_path: Path
) -> None:
    topic = make_topic()
    send(run, topic, [f"k\tv{i}" for i in range(10)])
    wanted = {"partitions": [{"topic": topic, "partition": 0, "offset": 3}], "version": 1}
    file = tmp_path / "offsets.json"
    file.write_text(json.dumps(wanted))

    deleted = run(t.DELETE_RECORDS, "--offset-json-file", file).ok()
    earliest = run(t.OFFSETS, "--topic", topic, "--time", "earliest").ok().strip()

    assert "low_watermark: 3" in deleted
    assert earliest == f"{topic}:0:3"


def test_log_directories_show_the_size_of_each_partition(run: Run, make_topic: MakeTopic) -> None:
    topic = make_topic()
    send(run, topic, ["k\t" + "v" * 5000], compression_type="none")

    lines = run(t.LOG_DIRS, "--describe", "--topic-list", topic).lines()
    described = json.loads(lines[-1])

    (folder,) = described["brokers"][0]["logDirs"]
    assert folder["error"] is None
    assert [p["partition"] for p in folder["partitions"]] == [f"{topic}-0"]
    assert 5000 < folder["partitions"][0]["size"] < 6000


def test_api_versions_reach_what_the_tools_need(run: Run) -> None:
    """Minima are those of Kafka 4.3: unmodified clients of any age find an overlap."""
    told = run(t.API_VERSIONS).ok()

    assert re.search(r"Produce\(0\): 0 to (\d+)", told)
    assert re.search(r"Fetch\(1\): 4 to (\d+)", told)
    assert re.search(r"ApiVersions\(18\): 0 to 4", told)
    assert re.search(r"JoinGroup\(11\): 0 to 9", told)


def test_features_are_raised_and_lowered(run: Run) -> None:
    """kafka-features: described; a downgrade and the upgrade back; or refused with the reason."""
    described = run(t.FEATURES, "describe").ok()
    lower = run(t.FEATURES, "downgrade", "--feature", "share.version=0").ok()
    lowered = run(t.FEATURES, "describe").ok()
    back = run(t.FEATURES, "upgrade", "--feature", "share.version=1").ok()
    strange = run(t.FEATURES, "upgrade", "--feature", "transaction.version=9")

    assert re.search(r"transaction.version .*FinalizedVersionLevel: 2", described)
    assert re.search(r"group.version .*FinalizedVersionLevel: 1", described)
    assert re.search(r"eligible.leader.replicas.version .*FinalizedVersionLevel: 1", described)
    assert "share.version was downgraded to 0" in lower
    assert re.search(r"share.version .*FinalizedVersionLevel: 0", lowered)
    assert "share.version was upgraded to 1" in back
    assert strange.exit_code == 1
    assert "only supports versions 0-2" in strange.out


def test_cluster_id_is_told(jvm: Tools, bootstrap: str) -> None:
    told = jvm.run(t.CLUSTER, "cluster-id", "--bootstrap-server", bootstrap).ok()

    assert re.search(r"Cluster ID: \S{22}\n", told)


def test_stored_segments_are_read_by_kafkas_own_dump_tool(
    jvm: Tools, run: Run, node: object, make_topic: MakeTopic
) -> None:
    """Kafka's DumpLogSegments reads our files to the last record without complaint."""
    topic = make_topic()
    send(run, topic, [f"k{i}\tv{i}" for i in range(20)], compression_type="lz4")
    folder = node.folder / "logs" / f"{topic}-0"  # type: ignore[attr-defined]  # A rig.nodes.Node.

    told = jvm.run(
        t.DUMP_LOG,
        *("--deep-iteration", "--print-data-log"),
        *("--files", folder / "00000000000000000000.log"),
    ).ok()

    assert told.count("| offset: ") == 20
    assert "key: k19 payload: v19" in told
    assert "isvalid: false" not in told
