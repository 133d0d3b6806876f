"""kafka-reassign-partitions --throttle on three brokers: as slow as it says, and clean after it."""

import json
import time
from collections.abc import Callable
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from rig import tools as t
from rig.clusters import Cluster
from rig.metadata import Seen
from rig.tools import Tools

RATE = 500_000
RECORD = b"x" * 10_000
COUNT = 300
# The least that the bytes take; Kafka gives out a second's worth in advance, we less.
SOONEST_S = (COUNT * len(RECORD) - 30_000) / RATE - 1.5


def test_a_throttled_move_takes_as_long_as_its_bytes(
    whole: Cluster, jvm: Tools, tmp_path: Path
) -> None:
    """3 MB at 500 KB/s from one broker to another, while clients write; --verify cleans up."""

    def run(tool: str, *arguments: object) -> str:
        return jvm.run(tool, "--bootstrap-server", whole.bootstrap, *arguments).ok()

    def described(is_there: Callable[[str], bool]) -> None:
        """Of the topic and of broker 1; any broker may be asked, each hears of it in its time."""
        whole.wait_until(
            lambda: is_there(run(t.CONFIGS, *of_topic) + run(t.CONFIGS, *of_broker)),
            "the throttles as they are to be",
        )

    def has_moved(seen: Seen) -> bool:
        partition = seen.topics[topic][0]
        return set(partition.replicas) == set(partition.isr) == {2}

    topic = "slowly-moved"
    admin = AdminClient({"bootstrap.servers": whole.bootstrap, "log_level": 0})
    admin.create_topics([NewTopic(topic, 1, replica_assignment=[[1]])])[topic].result(120)
    whole.wait_until_in_sync(topic)
    producer = Producer(
        {"bootstrap.servers": whole.bootstrap, "batch.size": 2 * len(RECORD), "log_level": 0}
    )
    for _ in range(COUNT):
        producer.produce(topic, RECORD)
    assert producer.flush(200) == 0
    file = tmp_path / "move.json"
    partitions = [{"topic": topic, "partition": 0, "replicas": [2]}]
    file.write_text(json.dumps({"version": 1, "partitions": partitions}))
    plan = ("--reassignment-json-file", file)
    of_topic = ("--entity-type", "topics", "--entity-name", topic, "--describe")
    of_broker = ("--entity-type", "brokers", "--entity-name", 1, "--describe")
    throttles = (
        "leader.replication.throttled.replicas=0:1",
        "follower.replication.throttled.replicas=0:2",
        f"leader.replication.throttled.rate={RATE}",
    )

    began_s = time.monotonic()
    started = run(t.REASSIGN, *plan, "--execute", "--throttle", RATE)
    whole.wait_until(lambda: whole.agree(has_moved, [topic]), "the move's end")
    took_s = time.monotonic() - began_s
    # They stay until --verify takes them back.
    described(lambda told: all(each in told for each in throttles))
    verified = run(t.REASSIGN, *plan, "--verify")
    described(lambda told: ".throttled." not in told)
    admin.delete_topics([topic])[topic].result(120)

    assert f"The inter-broker throttle limit was set to {RATE} B/s" in started
    assert took_s >= SOONEST_S
    assert f"Reassignment of partition {topic}-0 is completed." in verified
    assert "Clearing broker-level throttles" in verified
    assert f"Clearing topic-level throttles on topic {topic}" in verified
