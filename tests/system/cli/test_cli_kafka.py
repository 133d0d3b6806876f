"""The same commands against Apache Kafka itself."""

import json
from collections.abc import Iterator

import confluent_kafka
import pytest
from rig import kafka as kafka_rig
from rig.consumer import read

from tests.system.cli.ottla_command import Command


@pytest.fixture(scope="module")
def kafka() -> Iterator[Command]:
    if reason := kafka_rig.available():
        pytest.skip(reason)
    with kafka_rig.kafka(quick=True) as node:
        yield Command(node.bootstrap)


def test_topics_and_records_of_kafka(kafka: Command) -> None:
    """Created, filled, read, described, altered: nothing is said differently."""
    told = kafka("topic", "create", "flights", "-p", "2", "-s", "retention.ms=3600000").out
    assert told.startswith("Created flights: 2 partitions, one copy of each")
    assert told.endswith("Records are deleted after 1 hour.\n")
    sent = kafka(
        "produce",
        "flights",
        "-K",
        ":",
        "-z",
        "zstd",
        stdin="a:1\nb:2\nc:3\n",
    )
    assert sent.out == "3 records to flights, partition 0, offsets 0 to 2\n"
    assert sorted(kafka("consume", "flights", "--keys").lines) == ["a\t1", "b\t2", "c\t3"]
    assert len(kafka("consume", "flights", "--since", "10m", "--json").lines) == 3
    described = kafka("topic", "describe", "flights", "-o", "json").json
    assert [entry["isr"] for entry in described["partitions"]] == [[1], [1]]
    assert sum(entry["end_offset"] for entry in described["partitions"]) == 3
    assert ("retention.ms", "topic") in [
        (row["setting"], row["source"]) for row in described["settings"]
    ]
    kafka("topic", "alter", "flights", "-p", "3", "-u", "retention.ms")
    assert {"flights": 3}.items() <= {
        row["name"]: row["partition_count"] for row in kafka("topic", "list", "-o", "json").json
    }.items()
    created = kafka("produce", "made-by-producing", stdin="x\n").out
    assert created.endswith("the topic did not exist and was created\n")
    assert "did you mean flights?" in kafka.refused("consume", "flihgts")
    kafka("topic", "delete", "flights", "--yes")


def test_groups_of_kafka(kafka: Command) -> None:
    """Joined, described, rewound, undone, deleted."""
    kafka("topic", "create", "read")
    kafka("produce", "read", stdin="1\n2\n3\n4\n")
    assert kafka("consume", "read", "-g", "readers", "-n", "3").lines == ["1", "2", "3"]
    assert kafka("group", "describe", "readers", "-o", "json").json["lag"] == 1
    done = kafka("group", "reset", "readers", "--by", "-2", "--execute").lines
    assert kafka("group", "describe", "readers", "-o", "json").json["lag"] == 3
    kafka(*done[-1].split()[1:])
    assert kafka("consume", "read", "-g", "readers").lines == ["4"]
    assert "did you mean readers?" in kafka.refused("group", "describe", "reader")
    kafka("group", "delete", "readers", "--yes")
    assert kafka("group", "list", "-o", "json").json == []


def test_a_group_of_the_new_protocol_is_not_taken_for_another(kafka: Command) -> None:
    """Kafka's own groups (KIP-848): offsets and state are told, members are not guessed."""
    kafka("topic", "create", "new")
    kafka("produce", "new", stdin="1\n2\n")
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": kafka.bootstrap,
            "group.id": "modern",
            "group.protocol": "consumer",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    try:
        consumer.subscribe(["new"])
        (record,) = read(consumer, 1)
        consumer.commit(record, asynchronous=False)
        described = kafka("group", "describe", "modern", "-o", "json").json
        assert (described["state"], described["lag"]) == ("Stable", 1)
        assert described["members"] is None
        assert "'modern' is active (Stable)" in kafka.refused(
            *("group", "reset", "modern", "--to-earliest", "--execute")
        )
    finally:
        consumer.close()
    kafka("group", "reset", "modern", "--to-earliest", "--execute")
    assert kafka("group", "describe", "modern", "-o", "json").json["lag"] == 2
    kafka("group", "delete", "modern", "--yes")


def test_settings_of_kafka(kafka: Command) -> None:
    """Read with their sources, changed at once; a wrong name is answered from our own tables."""
    kafka("topic", "create", "set")
    changed = kafka("config", "set", "topic", "set", "retention.ms=5000", "-o", "json").json
    assert changed == [{"setting": "retention.ms", "old": "604800000", "new": "5000"}]
    lines = [line.split() for line in kafka("config", "get", "topic", "set", "--changed").lines]
    assert ["retention.ms", "5000", "topic"] in lines
    (row,) = kafka("config", "get", "broker", "1", "num.partitions", "-o", "json").json
    assert (row["value"], row["source"], row["read_only"]) == ("1", "broker-file", True)
    wrong = kafka.refused("config", "set", "topic", "set", "retention.m=5")
    assert "retention.m: did you mean retention.ms" in wrong
    # Kafka's brokers store a name that no part of them reads, and say nothing.
    taken = kafka("config", "set", "broker", "1", "log.retention.mss=5")
    assert "log.retention.mss: did you mean log.retention.ms" in taken.error
    assert kafka("config", "set", "topic", "set", "retention.ms=1d").lines[1].split() == [
        *("retention.ms", "5000", "86400000"),
    ]
    told = kafka("why", "compaction", "set-0").out
    assert told.startswith("set-0: not compacted: cleanup.policy is delete (set by: default)")


def test_brokers_and_partitions_of_kafka(kafka: Command) -> None:
    """Described, elected, looked at, planned: what has an API of Kafka's works there."""
    kafka("topic", "create", "placed", "-p", "2")
    told = kafka("cluster", "describe", "-o", "json").json
    (row,) = told["brokers"]
    assert (row["broker"], row["state"], row["not_in_sync"]) == (1, "alive", 0)
    assert row["leads"] == told["partition_count"] >= 2
    assert kafka("cluster", "health").lines[0] == "all is well"
    assert kafka("cluster", "controller", "-o", "json").json["controller"] == 1
    (row,) = kafka("partition", "elect", "--preferred", "placed-1", "-o", "json").json
    assert (row["partition"], row["outcome"], row["leader"]) == ("placed-1", "not needed", 1)
    assert kafka("partition", "elect", "--all", "-o", "json").json == []
    assert kafka("partition", "status", "-o", "json").json == []
    assert kafka("partition", "status", "placed").error == "nothing moves\n"
    assert kafka("partition", "cancel", "--all").out == "Nothing of it moves.\n"
    assert kafka("partition", "plan", "placed", "-o", "json").json["partitions"] == []
    refused = kafka.refused("partition", "reassign", "placed-0", "--to", "9", "--yes")
    assert "the broker refused to move placed-0" in refused
    assert kafka("cluster", "balance", "--apply").out == "The load is even already.\n"
    assert "only 0 brokers" in kafka.refused("broker", "drain", "1", "--yes")
    assert kafka("topic", "describe", "--under-replicated", "-o", "json").json == []
    assert "it is no Ottla" in kafka.refused("why", "isr", "placed-0")


def test_the_doctor_examines_kafka_and_predicts_its_stop(kafka: Command) -> None:
    """One broker: nothing is wrong, everything depends on it, and it proves itself."""
    kafka("topic", "create", "fragile")
    examined = json.loads(kafka.try_to("doctor", "-o", "json").out)
    # Topics of other tests may have settings at odds.
    assert [one for one in examined["findings"] if one["area"] != "settings"] == []
    seen = {one["area"]: one["seen"] for one in examined["checked"]}
    assert seen["versions"].startswith("Apache Kafka")
    assert "fragile-0" in kafka("whatif", "stop-broker", "1", "-o", "json").json["offline"]
    proven = kafka("cluster", "ready", "--prove", "-o", "json").json
    assert (proven["ready"], proven["brokers"][0]["replicas"]) == (True, [1])
